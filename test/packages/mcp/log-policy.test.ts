import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, onTestFinished, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { eventually } from "../../support/eventually.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { call, newClient } from "../../support/packages/mcp.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { bareEnvironment } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";

const CLI = fileURLToPath(new URL("../../../packages/mcp/src/cli.ts", import.meta.url));

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));

const home = await folderForFile("mcp-log-policy-");
const payer = await newPayer(chain);
const { body: sold } = await post(`${service.url}/test/basic`, v2(await signPayment(payer)));
const proofPath = `${new URL(String(sold.cert_url)).pathname}.tlog-proof`;
await eventually(async () => (await send(service.url + proofPath)).status, 200);
await writeFile(join(home, "policy.txt"), String((await send(`${service.url}/log`)).body.policy));

test("Over stdio, the user's policy proves a credential's certificates and shows that no record is left out", async () => {
  const client = newClient();
  onTestFinished(() => client.close());
  const env = { ...bareEnvironment(), HOME: home, XDG_STATE_HOME: join(home, "state") };
  const settings = { BASE_URL: service.url, LOG_POLICY: join(home, "policy.txt") };
  const server = { command: process.execPath, args: [CLI], env: { ...env, ...settings } };
  await client.connect(new StdioClientTransport({ ...server, stderr: "ignore" }));
  const { structured, text: output } = await call(client, "check_credential", { wallet: payer.address });
  expect(structured, output).toMatchObject({
    valid: true,
    credential: { credentialSubject: { wallet: payer.address.toLowerCase() } },
    log: { state: "proven", entries: [{ log: `${new URL(service.url).host}/log`, index: expect.any(Number) }] },
    wallet_log: { state: "nothing", hidden: [] },
  });
});
