import { spawn, spawnSync } from "node:child_process";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { didWeb } from "../../../api/platform/signing/did.ts";
import { createSigner } from "../../../api/platform/signing/document.ts";
import { claimsOf } from "../../../packages/verifier/src/claims.ts";
import { checkConditions } from "../../../packages/verifier/src/commands/conditions.ts";
import { checkDocument } from "../../../packages/verifier/src/commands/document.ts";
import { checkLog } from "../../../packages/verifier/src/commands/log.ts";
import { checkOffer, checkReceipt } from "../../../packages/verifier/src/commands/offer-receipt.ts";
import { verifyDocument } from "../../../packages/verifier/src/verify-document.ts";
import { jws, type Terms, typed } from "../../support/arbiter/signed-terms.ts";
import { PASSING } from "../../support/certificates/samples.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { barePythonHome, type Ended, endOf, pythonHome } from "../../support/packages/python.ts";
import { runCommand } from "../../support/packages/run-command.ts";
import { FORGERIES, forge, GOOD, NAMED_TWICE, NOT_STRICT } from "../verifier/forge.ts";
import {
  CREDENTIAL,
  credentialOf,
  ISSUER,
  JWKS,
  KEY,
  KEYS,
  SAMPLE_NOW,
  SIGNED_CREDENTIAL,
  SIGNED_VERDICT,
  SIGNER,
  STRANGER,
} from "../verifier/samples.ts";
import { HEADER, OFFER, RECEIPT, did as SHOP_DID, seller, stranger } from "../verifier/shop.ts";
import { entry, logOf, RECORD, sign, signer, witness } from "../verifier/tlog/signed-log.ts";

/** The TypeScript program's commands. */
const COMMANDS: Readonly<Record<string, (args: readonly string[]) => Promise<number>>> = {
  document: checkDocument,
  conditions: checkConditions,
  offer: checkOffer,
  receipt: checkReceipt,
  log: checkLog,
};
/** The parts of a report that programs read: its first words, codes, hashes, and which checks hold. */
const decided = (report: string) =>
  report.match(/^(valid|NOT VALID|NOT AS REQUIRED|same|DIFFERS)|\(\w+\)|[0-9a-f]{64}|^ {2}(yes|NO )/gm);

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const home = await pythonHome();

/** Documents by name, good and malformed. */
const CASES: readonly (readonly [name: string, source: string | Uint8Array])[] = [
  ["a good document", GOOD],
  ["a verdict", JSON.stringify(SIGNED_VERDICT)],
  ["a credential that passes", JSON.stringify(await SIGNER.sign(credentialOf([PASSING]), SAMPLE_NOW))],
  ...NOT_STRICT,
  ...NAMED_TWICE,
  ...FORGERIES.map(([, name, forgery]) => [name, JSON.stringify(forge(forgery))] as const),
  ...["[]", "null", '"text"', "1", JSON.stringify(CREDENTIAL)].map((text) => [text.slice(0, 20), text] as const),
];
const TIMES = ["2026-11-24T11:58:59Z", "2026-11-24T11:59:00Z", SAMPLE_NOW.toISOString(), "2026-12-20T07:59:59.999Z"];
const ENDS = [...TIMES, "2026-12-20T08:00:00.000Z", "2027-06-01T00:00:00Z"];

describe.skipIf(home === null)("the Python verifier", async () => {
  if (home === null) return;
  const { folder, python, program } = home;
  const file = (name: string) => join(folder, name);
  await writeFile(file("jwks.json"), JSON.stringify(JWKS));

  test("It agrees with jwcrypto, rfc8785, and the file on every vector", async () => {
    const vectors = here("../../vectors");
    const { code, stdout, stderr } = await endOf(
      python,
      [here("vectors.py"), vectors, here("../verifier/tlog/ml-dsa-44.txt")],
      { cwd: folder, env: {} },
    );
    expect([code, stderr]).toEqual([0, ""]);
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.filter(({ own, foreign }) => own !== true || (foreign !== true && foreign !== null))).toEqual([]);
    const files = (await readdir(vectors)).filter(
      (name) => name.endsWith(".json") && !["jwks.json", "escrow.json"].includes(name),
    );
    expect([...new Set(lines.map(({ file: name }) => name))].sort()).toEqual([...files, "ml-dsa-44.txt"].sort());
    expect(lines.length).toBeGreaterThan(80);
  });

  test("It judges every document, good or forged, as the TypeScript verifier does", async () => {
    const cases = CASES.flatMap(([name, source]) =>
      ["did:web:trust.example", "https://other.example", undefined].map((issuer) => ({ name, source, issuer })),
    ).map((one) => ({ ...one, at: SAMPLE_NOW.toISOString() }));
    cases.push(...ENDS.map((at) => ({ name: `a good document at ${at}`, source: GOOD, issuer: undefined, at })));
    const input = cases
      .map(({ source, ...rest }) => JSON.stringify({ ...rest, source: Buffer.from(source).toString("base64") }))
      .join("\n");
    const { stdout, stderr } = spawnSync(python, [here("judge.py"), file("jwks.json")], { input, encoding: "utf8" });
    expect(stderr).toBe("");
    const judged = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const wanted = await Promise.all(
      cases.map(async ({ source, issuer, at }) => {
        const report = await verifyDocument(Buffer.from(source), { keys: KEYS, issuer, at: new Date(at) });
        const claims = report.document === null ? null : claimsOf(report.document);
        return {
          valid: report.valid,
          code: report.signature.valid ? null : report.signature.code,
          freshness: report.freshness.state,
          about: claims?.about ?? null,
          summary: claims?.summary ?? null,
          details: claims?.details ?? null,
        };
      }),
    );
    const named = (all: readonly object[]) => all.map((one, index) => ({ ...cases[index], source: "", ...one }));
    expect(named(judged)).toEqual(named(wanted));
    expect(new Set(wanted.map(({ code }) => code)).size).toBeGreaterThan(8);
  });

  /** The arguments with file names replaced by paths. */
  const placed = (args: readonly string[]) =>
    args.map((arg) => (/^[\w-]+\.(json|txt|tlog-proof)$/.test(arg) ? file(arg) : arg));

  /** Runs the Python program's commands in one interpreter. */
  const interpreter = spawn(python, [here("commands.py")], {
    cwd: folder,
    env: {},
    stdio: ["pipe", "pipe", "inherit"],
  });
  await forFile({ stop: () => interpreter.stdin.end() });
  const results = createInterface(interpreter.stdout)[Symbol.asyncIterator]();
  async function runInPython(args: readonly string[]): Promise<Ended> {
    interpreter.stdin.write(`${JSON.stringify(args)}\n`);
    return JSON.parse((await results.next()).value ?? "");
  }

  /** Expects this exit code and the same decisions from both programs. Returns the Python program's output. */
  async function expectAlike(args: readonly string[], code: number): Promise<string> {
    const own = await runInPython(placed(args));
    const printed = own.stdout + own.stderr;
    const [name = "", ...rest] = placed(args);
    const command = COMMANDS[name];
    const other = await runCommand(() => (command === undefined ? checkDocument([name, ...rest]) : command(rest)));
    expect([own.code, other.code], `${printed}\n${other.text}`).toEqual([code, code]);
    if (code === 2) expect(own.stderr).not.toBe("");
    else expect(decided(own.stdout)).toEqual(decided(other.text));
    return printed;
  }

  const PINNED = ["--jwks", "jwks.json", "--at", SAMPLE_NOW.toISOString()];

  test("Its program prints the same reports with the same exit codes", { timeout: 240_000 }, async () => {
    const { url: origin } = await forFile(
      serveHttp((request, response) => {
        const body = { "/.well-known/jwks.json": JSON.stringify(JWKS), "/own": own, "/huge": " ".repeat(1_048_577) };
        if (request.url === "/moved") response.writeHead(302, { location: "/own" }).end();
        else response.writeHead(200).end(body[request.url as keyof typeof body] ?? "{}");
      }, "localhost"),
    );
    const issuer = didWeb(origin);
    const own = JSON.stringify(await createSigner(KEY, issuer).sign({ ...CREDENTIAL, issuer }, SAMPLE_NOW));
    const files = {
      "credential.json": JSON.stringify(SIGNED_CREDENTIAL),
      "passing.json": JSON.stringify(await SIGNER.sign(credentialOf([PASSING]), SAMPLE_NOW)),
      "verdict.json": JSON.stringify(SIGNED_VERDICT),
      "forged.json": JSON.stringify({ ...SIGNED_CREDENTIAL, id: "https://trust.example/" }),
      "strangers.json": JSON.stringify({ keys: [STRANGER.publicJwk] }),
      "claim.json": JSON.stringify({
        category: "http-delivery",
        conditions: { url: "https://é.example", min_bytes: 1e21 },
      }),
      "own.json": own,
    };
    for (const [name, content] of Object.entries(files)) await writeFile(file(name), content);
    const wallet = ["--wallet", PASSING.wallet];
    const table: readonly (readonly [number, readonly string[]])[] = [
      [0, ["credential.json", ...PINNED]],
      [0, ["document", "verdict.json", ...PINNED, "--issuer", "https://trust.example"]],
      [0, ["passing.json", ...PINNED, ...wallet, "--require", "verified,full_suite"]],
      [0, [`${origin}/own`, "--at", SAMPLE_NOW.toISOString()]],
      [0, ["own.json", "--issuer", origin, "--at", SAMPLE_NOW.toISOString()]],
      [0, ["conditions", "claim.json"]],
      [1, ["forged.json", ...PINNED]],
      [1, ["credential.json", ...PINNED, "--issuer", "https://other.example"]],
      [1, ["credential.json", "--jwks", "strangers.json"]],
      [1, ["credential.json", "--jwks", "jwks.json", "--at", "2027-06-01T00:00:00Z", "--require", "verified"]],
      [2, ["credential.json"]],
      [2, ["nothing.json", ...PINNED]],
      [2, ["credential.json", ...PINNED, "--require", "kindness"]],
      [2, ["credential.json", ...PINNED, "--wallet", "0x1"]],
      [2, ["credential.json", ...PINNED, "--issuer", "https://127.0.0.1"]],
      [2, ["credential.json", "--jwks", "jwks.json", "--at", "tomorrow"]],
      [2, ["credential.json", "--jwks", `${origin}/moved`]],
      [2, ["credential.json", "--jwks", `${origin}/huge`]],
      [2, ["credential.json", "--jwks", "http://shop.example/jwks.json"]],
      [2, ["credential.json", "--unknown"]],
      [2, ["conditions", "verdict.json"]],
      [3, ["credential.json", ...PINNED, "--require", "verified"]],
      [3, ["passing.json", ...PINNED, "--require", "verified", "--require", "retry_safety"]],
      [3, ["passing.json", ...PINNED, "--wallet", `0x${"1".repeat(40)}`]],
      [3, ["verdict.json", ...PINNED, "--require", "verified"]],
    ];
    for (const [code, args] of table) await expectAlike(args, code);
    // The installed program ends with the code, and prints what its commands do.
    for (const wanted of [0, 1, 2, 3]) {
      const [, args = expect.fail()] = table.find(([code]) => code === wanted) ?? [];
      const ended = await endOf(program, placed(args), { cwd: folder, env: {} });
      expect(ended).toEqual(await runInPython(placed(args)));
      expect(ended.code).toBe(wanted);
    }
  });

  test("It checks receipts and offers as the TypeScript program does", { timeout: 240_000 }, async () => {
    const info = (name: string, value: unknown) => ({ extensions: { "offer-receipt": { info: { [name]: value } } } });
    const signed = await typed(seller, "Receipt", RECEIPT);
    const { resourceUrl, validUntil: _, version: __, ...terms } = OFFER;
    const required = async (by = seller, change: Partial<Terms> = {}) => ({
      x402Version: 2,
      resource: { url: resourceUrl },
      accepts: [{ ...terms, ...change }],
      ...info("offers", [await typed(by, "Offer", OFFER)]),
    });
    const paid = { success: true, transaction: RECEIPT.transaction, network: "base", payer: RECEIPT.payer };
    const files: Readonly<Record<string, object>> = {
      "did.json": JSON.parse(SHOP_DID),
      "jws-receipt.json": jws(KEY, HEADER, RECEIPT),
      "jws-stranger.json": jws(STRANGER, HEADER, RECEIPT),
      "jws-offer.json": jws(KEY, HEADER, OFFER),
      "extra-payload.json": { ...jws(KEY, HEADER, RECEIPT), payload: RECEIPT },
      "crit.json": jws(KEY, { ...HEADER, crit: ["b64"], b64: false }, RECEIPT),
      "user.json": jws(KEY, HEADER, { ...RECEIPT, resourceUrl: "https://shop.example@evil.example/haiku" }),
      "receipt.json": signed,
      "paid.json": { ...paid, ...info("receipt", signed) },
      "other-tx.json": { ...paid, transaction: `0x${"12".repeat(32)}`, ...info("receipt", signed) },
      "402.json": await required(),
      "402-dearer.json": await required(seller, { amount: "1" }),
      "402-stranger.json": await required(stranger),
      "own-402.json": {
        ...(await required()),
        ...info("offers", [await typed(stranger, "Offer", { ...OFFER, payTo: stranger.address })]),
      },
    };
    for (const [name, content] of Object.entries(files)) await writeFile(file(name), JSON.stringify(content));
    await writeFile(file("header.txt"), Buffer.from(JSON.stringify(files["paid.json"])).toString("base64"));
    const DID = ["--did", "did.json"];
    const table: readonly (readonly [number, readonly string[]])[] = [
      [0, ["receipt", "jws-receipt.json", ...DID]],
      [0, ["receipt", "paid.json", "--pay-to", seller.address]],
      [0, ["receipt", "header.txt", "--offer", "402.json"]],
      [0, ["offer", "402.json", "--at", "1999"]],
      [0, ["offer", "jws-offer.json", ...DID, "--at", "2000"]],
      [1, ["offer", "jws-offer.json", ...DID, "--at", "2001"]],
      [1, ["offer", "402-dearer.json", "--at", "1"]],
      [1, ["offer", "402-stranger.json", "--at", "1"]],
      [1, ["receipt", "jws-stranger.json", ...DID]],
      [1, ["receipt", "receipt.json"]],
      [1, ["receipt", "other-tx.json", "--pay-to", seller.address]],
      [1, ["receipt", "paid.json", "--pay-to", stranger.address]],
      [1, ["receipt", "paid.json", "--offer", "402-stranger.json"]],
      [1, ["receipt", "paid.json", "--offer", "own-402.json"]],
      [2, ["receipt", "extra-payload.json", ...DID]],
      [2, ["receipt", "crit.json", ...DID]],
      [2, ["receipt", "user.json", ...DID]],
      [2, ["receipt", "402.json"]],
      [2, ["receipt", "receipt.json", "--pay-to", "0x1"]],
      [2, ["offer", "402.json", "--at", "soon"]],
    ];
    for (const [code, args] of table) await expectAlike(args, code);
  });

  test("It checks a record's place in the log as the TypeScript program does", { timeout: 240_000 }, async () => {
    const policy = `log ${signer.key.vkey}\nwitness w ${witness.key.vkey}\n`;
    await writeFile(file("policy.txt"), `${policy}quorum w\n`);
    await writeFile(file("no-quorum.txt"), `${policy}quorum none\n`);
    await writeFile(file("twice.txt"), `${policy}quorum w\nquorum w\n`);
    const good = await logOf(6).proof(2);
    const check = async (proof: string, record: object, { code = 1, policy: name = "policy.txt" } = {}) => {
      await writeFile(file("record.json"), JSON.stringify(record));
      await writeFile(file("record.tlog-proof"), proof);
      const trust = ["--policy", name, "--issuer", ISSUER, "--jwks", "jwks.json"];
      return expectAlike(["log", "record.json", "--proof", "record.tlog-proof", ...trust], code);
    };
    expect(await check(good, { ...RECORD, settlement: { final: true } }, { code: 0 })).toMatch(/entry 2 of the log/);
    await check(good, { ...RECORD, reversed: true }, { code: 0 });
    await check(good.replace(/\u2014 witness.*\n/, ""), RECORD, { code: 0, policy: "no-quorum.txt" });
    await check(good, RECORD, { code: 2, policy: "twice.txt" });
    const refused: readonly (readonly [RegExp, string, object])[] = [
      [/differ in verdict/, good, { ...RECORD, verdict: "fail" }],
      [/it is about "c1"/, good, { ...RECORD, id: "c2" }],
      [/a different one/, await logOf(6).proof(3), RECORD],
      [/names the index 1/, await logOf(6, { 2: entry(1) }).proof(2), RECORD],
      [/unknown_key/, await logOf(6, { 2: entry(2, {}, sign(RECORD, STRANGER)) }).proof(2), RECORD],
      [/does not know/, await logOf(6, { 2: entry(2, { type: "draft" }) }).proof(2), RECORD],
      [/inclusion_mismatch/, good.replace(/index 2/, "index 1"), RECORD],
      [/inclusion_mismatch/, good.replace(/index 2/, "index 9"), RECORD],
      [/quorum_not_met/, good.replace(/\u2014 witness.*\n/, ""), RECORD],
      [/malformed_log_proof/, good.replace("tlog-proof@v1", "tlog-proof@v2"), RECORD],
    ];
    for (const [reason, proof, record] of refused) expect(await check(proof, record)).toMatch(reason);
  });

  test("It installs without the extras and names the one that a command needs", async () => {
    const bare = await barePythonHome();
    const { stdout } = await bare.run([
      "-c",
      "import importlib.util as u; print(u.find_spec('x402'), u.find_spec('web3'))",
    ]);
    expect(stdout).toBe("None None\n");
    await writeFile(join(bare.folder, "receipt.json"), JSON.stringify(await typed(seller, "Receipt", RECEIPT)));
    const { code, stderr } = await endOf(bare.program, ["receipt", "receipt.json"], { cwd: bare.folder, env: {} });
    expect([code, stderr]).toEqual([2, expect.stringContaining("pip install 'agent-payment-trust[escrow]'")]);
  });
});
