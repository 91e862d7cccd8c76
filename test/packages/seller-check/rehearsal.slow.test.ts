import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { openShop } from "../../support/sellers/shop.ts";
import { startService } from "../../support/service/service.ts";

const CLI = fileURLToPath(new URL("../../../packages/seller-check/src/cli.ts", import.meta.url));
const call = promisify(execFile);

test("The command of GET /test/seller examines a shop on Base Sepolia and leaves no record at the service", async () => {
  const chain = await forFile(startTestChain({ network: "eip155:84532" }));
  const service = await forFile(startService({ chain }));
  const { rehearsal } = JSON.parse(await (await fetch(`${service.url}/test/seller`)).text());
  const [, , rpc] =
    /^(PRIVATE_KEY=0x… npx .*seller-check-[\d.]+tgz <url>) --rpc (https:\S+)$/.exec(rehearsal.command) ?? [];
  expect(rpc).toBe("https://sepolia.base.org");
  const key = generatePrivateKey();
  await chain.fund(privateKeyToAddress(key), 100_000n);
  const shop = await forFile(openShop(chain));
  const args = [CLI, `${shop.url}/haiku`, "--rpc", chain.rpcUrl, "--other", "/sonnet"];
  const { stdout } = await call(process.execPath, args, { env: { ...process.env, PRIVATE_KEY: key } });
  expect(stdout).toMatch(/^Level full\. The exam sent \d+ requests and spent 0\.003 USDC\.$/m);
  const record = await fetch(`${service.url}/verify?origin=${new URL(shop.url).origin}`);
  expect(await record.json()).toMatchObject({ tested: false });
});
