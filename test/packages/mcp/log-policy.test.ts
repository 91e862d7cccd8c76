import { writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, onTestFinished, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { eventually } from "../../support/eventually.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { call, newClient } from "../../support/packages/mcp.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { bareEnvironment } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";

const CLI = fileURLToPath(new URL("../../../packages/mcp/src/cli.ts", import.meta.url));

type Lie = (path: string) => Promise<Buffer> | null;
let port = 0;
let lie: Lie = () => null;
// What lies has to have the service's own origin: it is who signs.
const front = await forFile(
  serveHttp(async (asked, answer) => {
    const { url: path = "", method = "GET", headers } = asked;
    const told = lie(path);
    if (told !== null) return void answer.writeHead(200).end(await told);
    const real = request({ host: "localhost", port, path, method, headers }, (found) => {
      answer.writeHead(found.statusCode ?? 502, found.headers);
      found.pipe(answer);
    });
    asked.pipe(real);
  }, "localhost"),
);
const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain, config: { baseUrl: front.url } }));
port = service.config.port;

const home = await folderForFile("mcp-log-policy-");
const payer = await newPayer(chain);
const { body: sold } = await post(`${service.url}/test/basic`, v2(await signPayment(payer)));
const proofPath = `${new URL(String(sold.cert_url)).pathname}.tlog-proof`;
await eventually(async () => (await send(service.url + proofPath)).status, 200);
await writeFile(join(home, "policy.txt"), String((await send(`${service.url}/log`)).body.policy));

/** What the program says of the wallet's credential, started by the official client, with nothing kept from before. */
async function checked(state: string) {
  const client = newClient();
  onTestFinished(() => client.close());
  const env = {
    ...bareEnvironment(),
    HOME: home,
    XDG_STATE_HOME: join(home, state),
    BASE_URL: service.url,
    LOG_POLICY: join(home, "policy.txt"),
  };
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [CLI], env, stderr: "ignore" }));
  return call(client, "check_credential", { wallet: payer.address });
}

test("over stdio, the user's policy proves the certificates of a credential, and that nothing is left out", async () => {
  lie = () => null;
  const { structured, text: said } = await checked("honest");
  expect(structured, said).toMatchObject({
    valid: true,
    credential: { credentialSubject: { wallet: payer.address.toLowerCase() } },
    log: { state: "proven", entries: [{ log: `${new URL(service.url).host}/log`, index: expect.any(Number) }] },
    wallet_log: { state: "nothing", hidden: [] },
  });
});

const real = async (path: string) => Buffer.from(await (await fetch(`http://localhost:${port}${path}`)).arrayBuffer());
const failing = (entries: Buffer) => Buffer.from(entries.toString("latin1").replace('"pass"', '"fail"'), "latin1");

test.each<[string, Lie, object]>([
  [
    "proves another entry in place of the certificate's",
    (path) => (path.endsWith(".tlog-proof") ? real("/log/entry/0.tlog-proof") : null),
    { log: { state: "refused", reason: expect.stringMatching(/entry_mismatch/) } },
  ],
  [
    "shows another entry than the log's tree has",
    (path) => (path.includes("/tile/entries/") ? real(path).then(failing) : null),
    { wallet_log: { state: "refused", reason: expect.stringMatching(/entry_mismatch/) } },
  ],
])(
  "over stdio, a service that %s is refused, though its signature on the credential holds",
  async (what, told, found) => {
    lie = told;
    const { structured, text: said } = await checked(what.replaceAll(/\W/g, "-"));
    expect(structured, said).toMatchObject({ valid: false, signature: { valid: true }, credential: null, ...found });
  },
);
