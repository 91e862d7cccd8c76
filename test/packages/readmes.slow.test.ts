import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from "viem/accounts";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../scripts/embedded/ports.ts";
import { inShell, type PageCode, type Reader, run, save } from "../support/browser/page-code.ts";
import { type SaleScene, startSaleScene } from "../support/escrow/sale.ts";
import { newClient } from "../support/packages/mcp.ts";
import { startRegistry, type TestRegistry } from "../support/packages/registry.ts";
import { openShop } from "../support/sellers/shop.ts";
import { serveFacilitator } from "../support/sellers/stock-facilitator.ts";
import { bareEnvironment } from "../support/service/environment.ts";

// Follows the READMEs in a bare folder against a running service.

let scene: SaleScene;
let registry: TestRegistry;
let reader: Reader;
let shopPort: number;

beforeAll(async () => {
  const home = await mkdtemp(join(tmpdir(), "readmes-"));
  [scene, registry, shopPort] = [await startSaleScene(), await startRegistry(), await freePort()];
  const [merchant, payer] = [generatePrivateKey(), generatePrivateKey()];
  await scene.chain.setBalance(privateKeyToAddress(merchant), 10n ** 18n);
  await scene.chain.fund(privateKeyToAddress(payer), 1_000_000n);
  reader = { home, env: { ...registry.environment(home), MERCHANT_PRIVATE_KEY: merchant, PAYER_PRIVATE_KEY: payer } };
});
afterAll(async () => {
  registry?.stop();
  await scene?.stop();
  await rm(reader.home, { recursive: true, force: true });
});

/** A README with this test's addresses instead of the published ones. */
const readme = (folder: string): Promise<string> => addressed(`packages/${folder}/README.md`);

async function addressed(file: string): Promise<string> {
  const text = await readFile(new URL(`../../${file}`, import.meta.url), "utf8");
  return text
    .replaceAll("http://localhost:4020", scene.service.url)
    .replaceAll("http://127.0.0.1:8545", scene.chain.rpcUrl)
    .replaceAll(/\b3000\b/g, String(shopPort));
}

const command = (text: string): PageCode => ({ id: "command", caption: "command", text });
const commands = (text: string, pattern: RegExp): readonly string[] =>
  [...text.matchAll(/^ {4}(.+)$/gm)].map(([, line = ""]) => line).filter((line) => pattern.test(line));

/** The commands that download and install one of our packages. */
function installation(text: string): PageCode {
  const [download = "", ...others] = commands(text, /^curl -fO /);
  const [install = "", ...more] = commands(text, /^npm install \.\//);
  expect([...others, ...more]).toEqual([]);
  return command(`${download}\n${install}`);
}

/** The code block after the mention of a file name. */
function file(text: string, caption: string): PageCode {
  const [, code = ""] = new RegExp(`\`${caption}\`[^\`]*:\\n\\n\`\`\`[jt]s\\n(.*?)\`\`\``, "s").exec(text) ?? [];
  return { id: caption, caption, text: code };
}

test("The verifier is installed from a service and checks a credential of that service", async () => {
  const text = await readme("verifier");
  const [check = ""] = commands(text, /^npx .*http:\/\/localhost/);
  await inShell(reader, installation(text));
  expect(await inShell(reader, command(check))).toMatch(/^valid, not verified: never tested\n/);
});

test("The escrow package is installed, and its shop sells to the stock client and to its own buyer", {
  timeout: 180_000,
}, async () => {
  const text = await readme("escrow");
  await inShell(reader, installation(text));
  const shop = spawn(process.execPath, [await save(reader, file(text, "shop.ts"))], {
    cwd: reader.home,
    env: { ...bareEnvironment(), ...reader.env },
    stdio: ["ignore", "ignore", "inherit"],
  });
  onTestFinished(() => void shop.kill());
  const status = () =>
    fetch(`http://localhost:${shopPort}/haiku`, { method: "POST" }).then(
      (answer) => answer.status,
      () => 0,
    );
  await expect.poll(status, { timeout: 20_000 }).toBe(402);
  for (const name of ["buyer.ts", "escrow-buyer.ts"])
    expect(await run(reader, file(text, name)), name).toBe("{ haiku: 'An old silent pond' } release\n");
});

test("The MCP client's configuration starts the tools", async () => {
  const [, json = "{}"] = /```json\n(.*?)```/s.exec(await readme("mcp")) ?? [];
  const { command: program, args, env } = JSON.parse(json).mcpServers["agent-payment-trust"];
  const client = newClient();
  onTestFinished(() => client.close());
  const environment = { ...bareEnvironment(), ...reader.env, HOME: reader.home, BASE_URL: env.BASE_URL };
  await client.connect(
    new StdioClientTransport({ command: program, args, cwd: reader.home, env: environment, stderr: "ignore" }),
  );
  expect((await client.listTools()).tools).toHaveLength(12);
});

test("The exam for sellers runs from its URL", { timeout: 180_000 }, async () => {
  const shop = await openShop(scene.chain);
  onTestFinished(() => shop.stop());
  const [exam = ""] = commands(await readme("seller-check"), /npx -y/);
  const [, program = ""] = /^PRIVATE_KEY=0x… (.*)$/.exec(exam) ?? [];
  const asked = program.replace(`http://localhost:${shopPort}`, shop.url);
  const key = `PRIVATE_KEY=${reader.env.PAYER_PRIVATE_KEY}`;
  expect(await inShell(reader, command(`${key} ${asked} --other ${shop.url}/sonnet`))).toMatch(/^Level full\./m);
});

test("The project's README leads to a first payment and a first verification", { timeout: 180_000 }, async () => {
  const text = await addressed("README.md");
  const [client = ""] = commands(text, /^npm install @/);
  const [check = ""] = commands(text, /^npx --no-install agent-payment-trust-verifier/);
  const [, code = ""] = /```js\n(\/\/ pay\.mjs\n.*?)```/s.exec(text) ?? [];
  await inShell(reader, command(client));
  expect(await run(reader, { id: "pay", caption: "pay.mjs", text: code })).toMatch(/verdict: 'pass'/);
  await inShell(reader, installation(text));
  expect(await inShell(reader, command(check))).toMatch(/^valid, not verified: never tested\n/);
});

test("The gate is installed, and its shop sells to a wallet once it is verified", { timeout: 180_000 }, async () => {
  const text = await readme("gate");
  await inShell(reader, installation(text));
  const facilitator = await serveFacilitator(scene.chain);
  onTestFinished(facilitator.stop);
  const shop = spawn(process.execPath, [await save(reader, file(text, "shop.mjs"))], {
    cwd: reader.home,
    env: { ...bareEnvironment(), ...reader.env, FACILITATOR_URL: facilitator.url, PAY_TO: `0x${"5a".repeat(20)}` },
    stdio: ["ignore", "ignore", "inherit"],
  });
  onTestFinished(() => void shop.kill());
  const url = `http://localhost:${shopPort}/haiku`;
  const status = (pay: typeof fetch) =>
    pay(url, { method: "POST" }).then(
      (answer) => answer.status,
      () => 0,
    );
  await expect.poll(() => status(fetch), { timeout: 20_000 }).toBe(402);
  const account = privateKeyToAccount(generatePrivateKey());
  await scene.chain.fund(account.address, 1_000_000n);
  const pay = wrapFetchWithPayment(fetch, new x402Client().register("eip155:*", new ExactEvmScheme(account)));
  expect(await status(pay)).toBe(403);
  expect((await pay(`${scene.service.url}/test/basic`, { method: "POST" })).status).toBe(200);
  expect(await status(pay)).toBe(200);
});
