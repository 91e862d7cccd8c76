import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { link, readFile, stat, writeFile } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { describe, expect, onTestFinished, test } from "vitest";
import type { LogInputs } from "../../packages/action/src/inputs.ts";
import { verify } from "../../packages/action/src/verify.ts";
import { createLeftOut } from "../../packages/mcp/src/left-out.ts";
import { httpService, type Service } from "../../packages/mcp/src/service.ts";
import { parsePolicy } from "../../packages/verifier/src/index.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { respondEndlessly, serveHttp } from "../support/http-server.ts";
import { witnessSigner } from "../support/log/memory-log.ts";
import { between, call, connectHttp, connectLocal, newClient } from "../support/packages/mcp.ts";
import { post, send, v2 } from "../support/payments/requests.ts";
import { newPayer, signPayment } from "../support/payments/signing.ts";
import { bareEnvironment } from "../support/service/environment.ts";
import { startService } from "../support/service/service.ts";
import { waitUntil } from "../support/wait-until.ts";

// Runs the programs that check a wallet's certificates in the public log, against the real service and against fakes.

const programOf = (name: string) => fileURLToPath(new URL(`../../packages/${name}/src/cli.ts`, import.meta.url));
const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const payer = await newPayer(chain);
const wallet = payer.address.toLowerCase();
const { body: sold } = await post(`${service.url}/test/basic`, v2(await signPayment(payer)));
const PROOF = `${service.url}${new URL(String(sold.cert_url)).pathname}.tlog-proof`;
await waitUntil(async () => (await send(PROOF)).status === 200, 30_000);
const proof = (await send(PROOF)).text;
/** A valid proof of the same log, for another entry. */
const other = (await send(`${service.url}/log/entry/0.tlog-proof`)).text;
const log_policy = (await send(`${service.url}/log`)).body.policy as string;
const unmet = log_policy.replace(
  "quorum none",
  `witness w ${witnessSigner("witness.example/w", 7).key.vkey}\nquorum w`,
);
if (unmet === log_policy) throw new Error("The policy has a quorum: this test adds one.");
const folder = await folderForFile("log-proofs-");
await writeFile(join(folder, "policy.txt"), log_policy);

describe("check_credential", () => {
  const checked = async (input: object, url = service.url) =>
    (await call(await connectHttp(url), "check_credential", { wallet, ...input })).structured;

  test("A credential's certificates are looked up in the log with a policy, and reported as not checked without one", async () => {
    expect(await checked({})).toMatchObject({ valid: true, log: { state: "not_checked" } });
    for (const input of [{ log_policy }, { log_policy, log_proofs: [proof] }])
      expect(await checked(input)).toMatchObject({
        valid: true,
        log: { state: "proven", entries: [{ log: expect.stringMatching(/\/log$/), index: expect.any(Number) }] },
      });
    expect(await checked({ log_policy, log_proofs: [other] })).toMatchObject({
      valid: false,
      credential: null,
      log: { state: "refused", reason: expect.stringMatching(/entry_mismatch/) },
    });
    expect(await checked({ log_policy: unmet })).toMatchObject({
      valid: false,
      signature: { valid: true },
      log: { state: "refused", reason: expect.stringMatching(/quorum_not_met/) },
    });
    const client = await connectHttp(service.url);
    expect(await call(client, "check_credential", { wallet, log_proofs: [proof] })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/add log_policy/),
    });
    expect(await call(client, "check_credential", { wallet, log_policy: "quorum" })).toMatchObject({ isError: true });
  });

  test("The user's policy takes precedence over the caller's", async () => {
    const local = await connectLocal({ service: httpService(service.url), logPolicy: parsePolicy(log_policy) });
    const own = await call(local, "check_credential", { wallet });
    expect(own.structured).toMatchObject({ valid: true, log: { state: "proven" } });
    expect(await call(local, "check_credential", { wallet, log_policy })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/The user has set a log policy/),
    });
  });

  test("Over stdio, the user's policy proves a credential's certificates and shows that no record is left out", async () => {
    const client = newClient();
    onTestFinished(() => client.close());
    const settings = { BASE_URL: service.url, LOG_POLICY: join(folder, "policy.txt") };
    const env = { ...bareEnvironment(), HOME: folder, XDG_STATE_HOME: join(folder, "state"), ...settings };
    const server = { command: process.execPath, args: [programOf("mcp")], env };
    await client.connect(new StdioClientTransport({ ...server, stderr: "ignore" }));
    const { structured, text } = await call(client, "check_credential", { wallet });
    expect(structured, text).toMatchObject({
      valid: true,
      log: { state: "proven", entries: [{ log: `${new URL(service.url).host}/log`, index: expect.any(Number) }] },
      wallet_log: { state: "nothing", hidden: [] },
    });
  });

  test("With the user's own policy, credentials and records are compared with everything that the log has about the wallet", async () => {
    const policy = parsePolicy(log_policy);
    const kept: string[] = [];
    const store = {
      place: "kept.json",
      read: async () => kept.at(-1) ?? null,
      write: async (text: string) => void kept.push(text),
    };
    const local = (real: Service) => {
      const askLeftOut = createLeftOut({ ...reading, service: real, policy, store });
      return connectLocal({ service: real, logPolicy: policy, askLeftOut });
    };
    const reading = { mostEntries: 1_000, pause: async () => undefined };
    const honest = await local(httpService(service.url));
    const nothing = { wallet_log: { state: "nothing", hidden: [] } };
    expect((await call(honest, "check_credential", { wallet })).structured).toMatchObject({ valid: true, ...nothing });
    expect((await call(honest, "verify_agent", { wallet })).structured).toMatchObject({ verified: true, ...nothing });
    expect(kept.length).toBeGreaterThan(0);
    const flipped = between(service.url, (answer, { path }) =>
      path.startsWith("/verify") ? { ...answer, text: answer.text.replaceAll('"pass"', '"fail"') } : answer,
    );
    const { structured } = await call(await local(flipped), "verify_agent", { wallet });
    expect(structured.wallet_log).toMatchObject({ state: "hidden", reason: expect.stringMatching(/listed as "fail"/) });
    kept.push("{}");
    expect(await call(await local(httpService(service.url)), "verify_agent", { wallet })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/kept\.json: .*remove it to begin at entry 0/),
    });
    // Without a user's policy, nothing is compared, and the service itself reads no log for its callers.
    const handed = (await send(`${service.url}/credential/${wallet}`)).text;
    expect((await call(honest, "check_credential", { credential: handed })).structured).toMatchObject({
      wallet_log: { state: "not_checked", reason: expect.stringMatching(/Only the credential of a `wallet`/) },
    });
    expect(await checked({ log_policy })).toMatchObject({ wallet_log: { state: "not_checked" } });
  });

  test.each<[string, RequestListener, RegExp]>([
    ["has none", (_, answer) => void answer.writeHead(404).end("{}"), /the service answered 404/],
    ["is redirected", (_, answer) => void answer.writeHead(302, { location: "/" }).end(), /could not be read/],
    ["never ends", (_, answer) => respondEndlessly(answer), /could not be read: more than 4194304 bytes/],
    ["never comes", () => undefined, /could not be read: .*timeout/],
  ])("A server whose proof %s proves nothing, and the credential stays valid", async (_, answer, reason) => {
    const server = await serveHttp(answer);
    onTestFinished(server.stop);
    const [real, hostile] = [httpService(service.url), httpService(server.url)];
    const send: typeof real.send = ({ timeoutMs, ...request }) => {
      if (!request.path.endsWith(".tlog-proof")) return real.send(request);
      // The test does not wait that long.
      expect(timeoutMs).toBe(10_000);
      return hostile.send({ ...request, timeoutMs: reason.source.endsWith("timeout") ? 200 : 10_000 });
    };
    const client = await connectLocal({ service: { baseUrl: service.url, send } });
    const { structured } = await call(client, "check_credential", { wallet, log_policy });
    expect(structured).toMatchObject({
      valid: true,
      log: { state: "absent", reason: expect.stringMatching(reason), entries: [] },
    });
  });
});

test("The monitor follows the running service over HTTP, resumes where it stopped, and finds what was sold", async () => {
  const kept = ["--state", "state.json", "--wallets", "wallets.jsonl"];
  const log = (...args: string[]) =>
    promisify(execFile)(process.execPath, [programOf("verifier"), "log", ...args], { cwd: folder });
  const follow = () => log("monitor", `${service.url}/log`, "--policy", "policy.txt", "--once", ...kept);
  expect((await follow()).stdout).toMatch(/^ok: localhost:\d+\/log has (\d+) entries, \1 of them new\n$/);
  // Another wallet, because the tests below count this wallet's records.
  const payment = v2(await signPayment(await newPayer(chain)));
  const { body } = await post(`${service.url}/test/basic`, payment);
  const next = new URL(String(body.cert_url)).pathname;
  await waitUntil(async () => (await send(`${service.url}${next}.tlog-proof`)).status === 200, 30_000);
  expect((await follow()).stdout).toMatch(/, 1 of them new\n$/);
  const record = ["--record", `${service.url}/verify?wallet=${wallet}`];
  expect((await log("wallet", payer.address, ...kept, ...record)).stdout).toMatch(
    / has 1 certificate in the first \d+ entries of /,
  );
});

describe("the action", () => {
  const run = (log: Partial<LogInputs> | null, baseUrl = service.url) =>
    verify(
      {
        command: "verify",
        baseUrl,
        wallet: payer.address,
        require: [],
        log:
          log === null
            ? null
            : { policy: log_policy, proofs: [], isRequired: false, state: null, mostEntries: 1_000, ...log },
      },
      0,
    );
  const fileOf = async (text: string) => {
    const file = join(folder, `${randomUUID()}.tlog-proof`);
    await writeFile(file, text);
    return file;
  };

  test("It checks the proofs that it gets or fetches, and without a policy it reports that it checked none", async () => {
    expect(await run(null)).toMatchObject({ failure: null, outputs: { log: "not_checked" } });
    for (const proofs of [[], [await fileOf(proof)]])
      expect(await run({ proofs, isRequired: true })).toMatchObject({ failure: null, outputs: { log: "proven" } });
    expect(await run({ proofs: [await fileOf(other)] })).toMatchObject({
      outputs: { verified: "true", log: "refused" },
      failure: expect.stringMatching(/^A proof of the public log is wrong: entry_mismatch: /),
    });
    expect(await run({ policy: unmet })).toMatchObject({ failure: expect.stringMatching(/quorum_not_met/) });
    await expect(run({ policy: "log" })).rejects.toThrow(/^log-policy cannot be used: line 1/);
    await expect(run({ proofs: ["nowhere"] })).rejects.toThrow(/^log-proofs names "nowhere".*ENOENT/);
  });

  test("It reads and keeps what the log has about the wallet, and fails the step if the record differs", async () => {
    const state = join(folder, "action.json");
    expect(await run({ mostEntries: 0 })).toMatchObject({ failure: null, outputs: { "log-wallet": "not_checked" } });
    const kept = { state, isRequired: true };
    expect(await run(kept)).toMatchObject({ failure: null, outputs: { "log-wallet": "nothing" } });
    // A hard link keeps the old content, so this shows that the file is replaced and never overwritten.
    await link(state, `${state}.before`);
    const before = await readFile(state, "utf8");
    await writeFile(`${state}.new`, "what a canceled job has left");
    expect(await run(kept)).toMatchObject({ failure: null, outputs: { "log-wallet": "nothing" } });
    expect(await readFile(`${state}.before`, "utf8")).toBe(before);
    expect([(await stat(state)).ino === (await stat(`${state}.before`)).ino, await readFile(state, "utf8")]).toEqual([
      false,
      before,
    ]);
    const server = await serveHttp((request, answer) => {
      if (request.url?.endsWith(".tlog-proof")) return void answer.writeHead(404).end();
      const isKept = request.url?.includes("/tile/entries/");
      const isRecord = request.url?.startsWith("/verify");
      void fetch(service.url + request.url).then(async (real) => {
        answer.writeHead(isKept ? 500 : real.status);
        if (isRecord) return answer.end((await real.text()).replaceAll('"result":"pass"', '"result":"fail"'));
        answer.end(Buffer.from(await real.arrayBuffer()));
      });
    }, "localhost");
    onTestFinished(server.stop);
    // Otherwise only new entries would be read.
    const policy = log_policy.replaceAll(service.url, server.url);
    const lied = await run({ ...kept, policy }, server.url);
    expect(lied.outputs["log-wallet"]).toBe("hidden");
    expect(lied.failure).toMatch(/^The log has what the record does not show: .*is listed as "fail"/);
    expect(await run({ policy }, server.url)).toMatchObject({ outputs: { "log-wallet": "incomplete" } });
    await writeFile(state, "{}");
    await expect(run(kept)).rejects.toThrow(/^log-state cannot be used: the stored state/);
  });

  const elsewhere: RequestListener = (_, answer) => void answer.writeHead(302, { location: "https://a.example" }).end();
  test.each<[string, RequestListener, RegExp]>([
    ["a 404", (_, answer) => void answer.writeHead(404).end(), /returned status 404/],
    ["a redirect", elsewhere, /cannot be read: /],
    ["an endless response", (_, answer) => respondEndlessly(answer), /more than 1 MiB/],
  ])(
    "With %s as the proof, the wallet is still verified unless the step requires a proof",
    async (_, answer, reason) => {
      const server = await lying(answer);
      const report = await run({}, server.url);
      expect(report).toMatchObject({ failure: null, outputs: { verified: "true", log: "absent" } });
      expect(report.summary).toMatch(reason);
      const { failure } = await run({ isRequired: true }, server.url);
      expect(failure).toMatch(/^The certificates are not proven to be in the public log: /);
      expect(failure).toMatch(reason);
    },
  );

  test("A page in place of a proof fails the step, and its text is escaped in the summary", async () => {
    const server = await lying((_, answer) => void answer.end("<p>`` **Proven**\n\n</p>"));
    const { failure, summary } = await run({}, server.url);
    expect(failure).toMatch(/malformed_log_proof/);
    expect(summary).toMatch(/Public log: \*\*refused\*\*\. `` [^`\n]* ``$/m);
  });

  /** The service with other responses for its proofs. */
  async function lying(answerProof: RequestListener) {
    const server = await serveHttp((request, answer) => {
      if (request.url?.endsWith(".tlog-proof")) return answerProof(request, answer);
      void fetch(service.url + request.url).then(async (real) => answer.end(await real.text()));
    }, "localhost");
    onTestFinished(server.stop);
    return server;
  }
});
