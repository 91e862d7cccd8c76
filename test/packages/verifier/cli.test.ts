import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { certificateCredential } from "../../../api/certificates/agent-registries/credential.ts";
import { didWeb } from "../../../api/platform/signing/did.ts";
import { createSigner, type Unsigned } from "../../../api/platform/signing/document.ts";
import { sellerCredential } from "../../../api/sellers/published/verification.ts";
import { checkDocument } from "../../../packages/verifier/src/commands/document.ts";
import { checkProof } from "../../../packages/verifier/src/commands/proof.ts";
import { PASSING } from "../../support/certificates/samples.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { runCommand } from "../../support/packages/run-command.ts";
import { forge } from "./forge.ts";
import {
  BASE_URL,
  CREDENTIAL,
  credentialOf,
  ISSUER,
  JWKS,
  KEY,
  SAMPLE_NOW,
  SIGNED_CREDENTIAL,
  SIGNED_VERDICT,
  SIGNER,
  STRANGER,
} from "./samples.ts";

const CLI = fileURLToPath(new URL("../../../packages/verifier/src/cli.ts", import.meta.url));
const AT = ["--at", SAMPLE_NOW.toISOString()];
const AFTER = ["--at", "2027-06-01T00:00:00Z"];

/** The paths that were requested from the issuer, a local web server that serves its keys and one credential. */
let asked: string[] = [];
/** The server's responses by path. One redirects to the keys. */
const ANSWERS: Record<string, { status: number; body: string; headers?: Record<string, string> }> = {};

const folder = await folderForFile("verifier-cli-");
const { url: origin } = await forFile(
  serveHttp((request, response) => {
    asked.push(request.url ?? "");
    const { status, body, headers } = ANSWERS[request.url ?? ""] ?? { status: 404, body: "nothing" };
    response.writeHead(status, headers).end(body);
  }, "localhost"),
);
const issuer = didWeb(origin);
const own = await createSigner(KEY, issuer).sign({ ...CREDENTIAL, issuer }, SAMPLE_NOW);
const files = {
  "credential.json": JSON.stringify(SIGNED_CREDENTIAL, null, 2),
  "verdict.json": JSON.stringify(SIGNED_VERDICT),
  "forged.json": JSON.stringify({ ...SIGNED_CREDENTIAL, id: "https://trust.example/credential/0x1" }),
  "strange.json": JSON.stringify(forge({ jwsKey: STRANGER })),
  "broken.json": "{",
  "escape.json": '{"proof": "\u001b[2J\u009b2J"}',
  "jwks.json": JSON.stringify(JWKS),
  "strangers.json": JSON.stringify({ keys: [STRANGER.publicJwk] }),
  "own.json": JSON.stringify(own),
};
for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
ANSWERS["/.well-known/jwks.json"] = { status: 200, body: files["jwks.json"] };
ANSWERS["/credential/0x70"] = { status: 200, body: files["own.json"] };
ANSWERS["/moved"] = { status: 302, body: "", headers: { location: "/.well-known/jwks.json" } };
ANSWERS["/huge"] = { status: 200, body: " ".repeat(1_048_577) };

/** Runs the command in this process, which is faster than a new one. File names refer to the folder. */
function run(args: readonly string[]) {
  asked = [];
  const placed = args.map((arg) => (/^\w[\w-]*\.json$/.test(arg) ? join(folder, arg) : arg));
  return runCommand(() => (placed[0] === "proof" ? checkProof(placed.slice(1)) : checkDocument(placed)));
}

/** Runs the program in a new process. */
async function runProgram(args: readonly string[], input = "") {
  const child = spawn(process.execPath, [CLI, ...args], { cwd: folder });
  child.stdin.end(input);
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { code, out, err };
}

const PINNED = ["--jwks", "jwks.json"];

describe("the program", () => {
  test("It reads a file, with or without its sub-command, or standard input, and exits with 0 or 1", async () => {
    const [named, piped, forged] = await Promise.all([
      runProgram(["document", "credential.json", ...PINNED, ...AT]),
      runProgram(["-", ...PINNED, ...AT], JSON.stringify(SIGNED_CREDENTIAL)),
      runProgram(["forged.json", ...PINNED, ...AT]),
    ]);
    expect(named).toMatchObject({ code: 0, err: "" });
    expect(piped).toEqual(named);
    expect(forged).toMatchObject({ code: 1, err: "" });
  });

  test("It exits with 2 for wrong usage and prints the reason only to standard error", async () => {
    const [none, wrong, help] = await Promise.all([
      runProgram([]),
      runProgram(["credential.json", "--trust-me"]),
      runProgram(["--help"]),
    ]);
    expect(none).toEqual({ code: 2, out: "", err: expect.stringMatching(/Exit codes: 0 valid/) });
    expect(wrong).toEqual({ code: 2, out: "", err: expect.stringMatching(/--trust-me/) });
    expect(wrong.err).not.toMatch(/^\s+at /m);
    expect(help).toMatchObject({ code: 0, out: expect.stringMatching(/--issuer/) });
  });
});

describe("exit code 0", () => {
  test.each([
    ["a file with pinned keys", ["credential.json", ...PINNED]],
    ["pinned keys and the issuer", ["credential.json", ...PINNED, "--issuer", "https://trust.example"]],
    ["a verdict", ["verdict.json", ...PINNED]],
  ])("It is valid for %s, without a request to the network", async (_, args) => {
    const { code, text } = await run([...args, ...AT]);
    expect({ code, asked }).toEqual({ code: 0, asked: [] });
    expect(text).toMatch(/^valid.*\n {2}signature {2}valid, by did:web:trust\.example with key \S+, on 2026-11-24/);
    expect(text).toMatch(/trusted {4}\S*jwks\.json: --jwks names these keys/);
  });

  test("A file is valid with the keys of the expected issuer", async () => {
    const { code, text } = await run(["own.json", "--issuer", origin, ...AT]);
    expect({ code, asked }).toEqual({ code: 0, asked: ["/.well-known/jwks.json"] });
    expect(text).toContain(`trusted    ${origin}/.well-known/jwks.json: --issuer names this issuer`);
  });

  test("A URL is expected to be from its own origin, and the keys may also be a URL", async () => {
    const url = `${origin}/credential/0x70`;
    const { code, text } = await run([url, ...AT]);
    expect({ code, asked }).toEqual({ code: 0, asked: ["/credential/0x70", "/.well-known/jwks.json"] });
    expect(text).toContain("the document was read from this origin");
    expect(await run([url, "--jwks", `${origin}/.well-known/jwks.json`, ...AT])).toMatchObject({ code: 0 });
  });

  test("With --json it prints a machine-readable report with signature and freshness apart", async () => {
    const { code, text } = await run(["credential.json", ...PINNED, ...AT, "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(text)).toEqual({
      valid: true,
      signature: {
        valid: true,
        issuer: "did:web:trust.example",
        kid: KEY.publicJwk.kid,
        created: SAMPLE_NOW.toISOString(),
      },
      freshness: { state: "current", from: SAMPLE_NOW.toISOString(), until: "2026-12-20T08:00:00.000Z" },
      claims: {
        kind: "wallet",
        wallet: PASSING.wallet,
        about: `wallet ${PASSING.wallet}`,
        summary: "not verified: FAIL in scam",
        details: expect.arrayContaining(["scam_resistance: FAIL until 2026-12-21T09:30:00.000Z"]),
      },
      shortcomings: [],
      trusted: { issuer: null, keys: expect.stringMatching(/jwks\.json$/), because: "--jwks names these keys" },
    });
  });
});

describe("exit code 1", () => {
  test.each([
    ["a changed document", ["forged.json", ...PINNED, ...AT], /not valid \(jws_mismatch\)/],
    ["other keys", ["credential.json", "--jwks", "strangers.json", ...AT], /not valid \(unknown_key\)/],
    [
      "another issuer",
      ["credential.json", ...PINNED, "--issuer", "https://other.example", ...AT],
      /\(issuer_mismatch\)/,
    ],
    ["an unsigned document", ["jwks.json", ...PINNED], /\(malformed_document\): there is no proof/],
  ])("It is returned for %s", async (_, args, message) => {
    const { code, text } = await run(args);
    expect(code).toBe(1);
    expect(text).toMatch(/^NOT VALID\n/);
    expect(text).toMatch(message);
    expect(text).toMatch(/freshness {2}unknown: without a valid signature/);
  });

  test("A document from another issuer than the expected one is not valid", async () => {
    const { code, text } = await run(["credential.json", "--issuer", origin, ...AT]);
    expect(code).toBe(1);
    expect(text).toMatch(/issuer_mismatch.*did:web:trust\.example/);
  });

  test("An expired document is not valid although its signature is", async () => {
    const { code, text } = await run(["credential.json", ...PINNED, ...AFTER]);
    expect(code).toBe(1);
    expect(text).toMatch(/^NOT VALID\n {2}signature {2}valid, by .*\n {2}freshness {2}expired on 2026-12-20/);
  });

  test("Text from a stranger cannot control the terminal", async () => {
    const { code, text } = await run(["escape.json", ...PINNED]);
    expect(code).toBe(1);
    expect(text).toMatch(/^[\x20-\x7e\n]+$/);
  });
});

describe("exit code 2", () => {
  test.each([
    ["two documents", ["a.json", "b.json"], /Expected one file, URL, or - for standard input; got 2/],
    [
      "a document that only names its own issuer",
      ["credential.json"],
      /names its own issuer proves nothing; add --issuer or --jwks/,
    ],
    [
      "an unknown requirement",
      ["credential.json", ...PINNED, "--require", "verified,canpay"],
      /"canpay" cannot be required: expected verified, can_pay, scam_resistance/,
    ],
    ["an empty requirement", ["credential.json", ...PINNED, "--require", ""], /"" cannot be required/],
    ["an invalid wallet", ["credential.json", ...PINNED, "--wallet", "0x70"], /--wallet "0x70" is not an address/],
    ["an invalid time", ["credential.json", ...PINNED, "--at", "yesterday"], /--at "yesterday" is not a UTC time/],
    ["a missing file", ["none.json", ...PINNED], /none\.json" cannot be read: ENOENT/],
    ["a proof command without a record", ["proof"], /published proof of a failed behavioral test/],
    ["a signed document", ["proof", "credential.json"], /expected the JSON record of a certificate/],
    ["a record that is not JSON", ["proof", "broken.json"], /^The record cannot be read: not JSON/],
    ["a record without a proof", ["proof", "jwks.json"], /no published proof/],
    ["plain http", ["http://trust.example/credential/0x70"], /was not fetched: expected https/],
  ])("It is returned for %s", async (_, args, message) => {
    expect(await run(args)).toEqual({ code: 2, text: expect.stringMatching(message) });
    expect(asked).toEqual([]);
  });

  test.each([
    ["/missing", /returned status 404/],
    ["/moved", /cannot be read/],
    ["/huge", /more than 1 MiB/],
  ])("It is returned for keys at %s", async (path, message) => {
    const { code, text } = await run(["credential.json", "--jwks", `${origin}${path}`]);
    expect(code).toBe(2);
    expect(text).toMatch(message);
    expect(asked).toEqual([path]);
  });

  test("It is returned for an unreachable issuer", async () => {
    const { code, text } = await run(["own.json", "--issuer", "http://localhost:1"]);
    expect(code).toBe(2);
    expect(text).toMatch(/"http:\/\/localhost:1\/\.well-known\/jwks\.json" cannot be read/);
  });
});

const { wallet } = PASSING;
const OTHER = "0x00000000000000000000000000000000000000aa";
const basic = { ...PASSING, id: "00112233aabbccde", product: "basic" } as const;
const failed = { ...basic, id: "00112233aabbccdf", product: "scam", result: "fail" } as const;
const signed = async (document: Parameters<typeof SIGNER.sign>[0]) =>
  JSON.stringify(await SIGNER.sign(document, SAMPLE_NOW));
const seller = {
  origin: "https://shop.example",
  path_prefix: "/",
  tested: true,
  verified_means: "",
  certs: [],
  reasons: [],
};
/** The members of an arbiter's verdict that a reader looks at. */
const VERDICT = {
  "@context": ["https://www.w3.org/ns/credentials/undefined-terms/v2"],
  type: "ArbiterVerdict",
  id: "ab".repeat(16),
  issuer: ISSUER,
  verdict: "refund",
  category: "http-delivery",
  conditions_sha256: "cd".repeat(32),
  deal_ref: "deal\u202e7",
  parties: { payer: { wallet }, payee: { wallet: OTHER } },
  verdict_url: `${BASE_URL}/arbiter/verdict/${"ab".repeat(16)}`,
  supersedes: { id: "ef".repeat(16) },
};
const verified = credentialOf([basic]) as Unsigned & { readonly credentialSubject: object };
/** A credential from an installation that runs on a test network. */
const inTestMoney = {
  ...verified,
  credentialSubject: { ...verified.credentialSubject, test_network: "eip155:84532" },
};
const claimed = {
  "verified.json": await signed(credentialOf([basic])),
  "untested.json": await signed(credentialOf([])),
  "test-network.json": await signed(inTestMoney),
  "lapsed.json": await signed(credentialOf([{ ...basic, reversedAt: SAMPLE_NOW }])),
  "other-fail.json": await signed(credentialOf([failed, basic])),
  "certificate.json": await signed(certificateCredential(basic, ISSUER, BASE_URL)),
  "seller.json": await signed(
    sellerCredential(
      { ...seller, verified: true, checked_at: SAMPLE_NOW.toISOString() } as unknown as Parameters<
        typeof sellerCredential
      >[0],
      ISSUER,
      `${BASE_URL}/credential?origin=https://shop.example`,
    ),
  ),
  "full-verdict.json": await signed(VERDICT),
};
for (const [name, content] of Object.entries(claimed)) await writeFile(join(folder, name), content);

describe("exit code 0 with a summary", () => {
  test.each([
    ["verified.json", "valid, verified", `about      wallet ${wallet}`],
    ["credential.json", "valid, not verified: FAIL in scam", `about      wallet ${wallet}`],
    ["untested.json", "valid, not verified: never tested", `about      wallet ${wallet}`],
    ["lapsed.json", "valid, not verified: no current PASS", `about      wallet ${wallet}`],
    ["test-network.json", "valid, verified on the test network eip155:84532 only", `about      wallet ${wallet}`],
    ["seller.json", "valid, verified", "about      seller https://shop.example"],
    ["certificate.json", "valid", "result     PASS in basic"],
    ["certificate.json", "valid", "which does not show whether the wallet is verified"],
    ["full-verdict.json", "valid", "result     verdict refund (http-delivery)"],
    ["full-verdict.json", "valid", `about      the claim with conditions_sha256 cdcd`],
  ])("The report of %s states its summary and its subject", async (file, first, about) => {
    const { code, text } = await run([file, ...PINNED, ...AT]);
    expect(code).toBe(0);
    expect(text.split("\n")[0]).toBe(first);
    expect(text).toContain(about);
  });

  test("The report of a verdict names its deal, its parties, and the verdict it supersedes, without controlling the terminal", async () => {
    const { text } = await run(["full-verdict.json", ...PINNED, ...AT]);
    expect(text).toMatch(/^[\x20-\x7e\n]+$/);
    expect(text).toContain('deal "deal\\u202e7"');
    expect(text).toContain(`payer ${wallet}, as the claim names it`);
    expect(text).toContain(`payee ${OTHER}, as the claim names it`);
    expect(text).toContain(`it supersedes the verdict ${"ef".repeat(16)}`);
  });

  test.each([
    ["verified", ["verified.json", "--require", "verified"]],
    ["two requirements in one option", ["verified.json", "--require", "verified,can_pay"]],
    ["one requirement in each of two options", ["verified.json", "--require", "verified", "--require", "can_pay"]],
    ["one capability with a FAIL in another", ["credential.json", "--require", "can_pay"]],
    ["a verified seller", ["seller.json", "--require", "verified"]],
  ])("The requirement of %s is met", async (_, args) => {
    const { code, text } = await run([...args, ...PINNED, ...AT]);
    expect({ code, text }).toEqual({ code: 0, text: expect.not.stringContaining("NOT AS REQUIRED") });
  });
});

describe("exit code 3", () => {
  const cannot = "and only a wallet's or a seller's credential can state it";
  test.each([
    ["a FAIL with a PASS", ["credential.json", "--require", "verified"], "not verified: FAIL in scam"],
    [
      "a FAIL of the capability",
      ["other-fail.json", "--require", "scam_resistance"],
      "no fresh PASS for scam_resistance",
    ],
    [
      "a capability without a test",
      ["verified.json", "--require", "verified,retry_safety"],
      "no fresh PASS for retry_safety",
    ],
    ["a reversed PASS", ["lapsed.json", "--require", "can_pay"], "no fresh PASS for can_pay"],
    ["a PASS in test money", ["test-network.json", "--require", "verified"], "on the test network eip155:84532 only"],
    ["a capability in test money", ["test-network.json", "--require", "can_pay"], "no fresh PASS for can_pay"],
    ["another wallet", ["verified.json", "--wallet", OTHER], `it is about wallet ${wallet}, not about wallet ${OTHER}`],
    [
      "a seller instead of a wallet",
      ["seller.json", "--require", "verified", "--wallet", wallet],
      "seller https://shop",
    ],
    ["a seller's credential for a capability", ["seller.json", "--require", "can_pay"], "no fresh PASS for can_pay"],
    ["one certificate", ["certificate.json", "--require", "verified"], cannot],
    ["a verdict", ["full-verdict.json", "--require", "verified"], cannot],
    ["a verdict about two wallets", ["full-verdict.json", "--wallet", wallet], `not about wallet ${wallet}`],
    ["a document of no known type", ["verdict.json", "--require", "verified"], cannot],
  ])("It is returned for %s", async (_, args, shortcoming) => {
    const { code, text } = await run([...args, ...PINNED, ...AT]);
    expect(code).toBe(3);
    expect(text).toMatch(/^valid/);
    expect(text).toMatch(new RegExp(`\nNOT AS REQUIRED: .*${shortcoming.replaceAll(/[()]/g, "\\$&")}`));
    const { shortcomings } = JSON.parse((await run([...args, ...PINNED, ...AT, "--json"])).text);
    expect(shortcomings.join()).toContain(shortcoming);
  });

  test("A forged or expired document exits with 1 for any requirement", async () => {
    const required = ["--require", "verified", "--wallet", wallet];
    expect(await run(["forged.json", ...PINNED, ...AT, ...required])).toMatchObject({ code: 1 });
    const { code, text } = await run(["verified.json", ...PINNED, ...AFTER, ...required]);
    expect(code).toBe(1);
    expect(text).toMatch(new RegExp(`^NOT VALID\n(.*\n)*  about {6}wallet ${wallet}\n  claimed {4}verified\n`));
  });
});
