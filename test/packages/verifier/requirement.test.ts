import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { certificateCredential } from "../../../api/certificates/agent-registries/credential.ts";
import { sellerCredential } from "../../../api/sellers/published/verification.ts";
import { PASSING } from "../../support/certificates/samples.ts";
import { folderForFile } from "../../support/for-file.ts";
import {
  BASE_URL,
  credentialOf,
  ISSUER,
  JWKS,
  SAMPLE_NOW,
  SIGNED_CREDENTIAL,
  SIGNED_VERDICT,
  SIGNER,
} from "./samples.ts";

const CLI = fileURLToPath(new URL("../../../packages/verifier/src/cli.ts", import.meta.url));
const AT = ["--at", SAMPLE_NOW.toISOString()];
const AFTER = ["--at", "2027-06-01T00:00:00Z"];
const PINNED = ["--jwks", "jwks.json"];

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
/** Members of an arbiter's verdict that a reader looks at. */
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
const files = {
  "verified.json": await signed(credentialOf([basic])),
  "untested.json": await signed(credentialOf([])),
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
  "credential.json": JSON.stringify(SIGNED_CREDENTIAL),
  "verdict.json": JSON.stringify(SIGNED_VERDICT),
  "forged.json": JSON.stringify({ ...SIGNED_CREDENTIAL, id: "https://trust.example/credential/0x1" }),
  "jwks.json": JSON.stringify(JWKS),
};
const folder = await folderForFile("verifier-requirement-");
for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);

/** One run in the folder of the files above. */
async function run(args: readonly string[]) {
  const child = spawn(process.execPath, [CLI, ...args], { cwd: folder });
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { code, out, err };
}

describe("exit code 0: authentic, and as required", () => {
  test.each([
    ["verified.json", "valid, verified", `about      wallet ${wallet}`],
    ["credential.json", "valid, not verified: FAIL in scam", `about      wallet ${wallet}`],
    ["untested.json", "valid, not verified: never tested", `about      wallet ${wallet}`],
    ["lapsed.json", "valid, not verified: no current PASS", `about      wallet ${wallet}`],
    ["seller.json", "valid, verified", "about      seller https://shop.example"],
    ["certificate.json", "valid", "says       PASS in basic"],
    ["certificate.json", "valid", "which does not say whether the wallet is verified"],
    ["full-verdict.json", "valid", "says       verdict refund (http-delivery)"],
    ["full-verdict.json", "valid", `about      the claim with conditions_sha256 cdcd`],
  ])("%s is printed with what it says, and about whom", async (file, first, about) => {
    const { code, out } = await run([file, ...PINNED, ...AT]);
    expect(code).toBe(0);
    expect(out.split("\n")[0]).toBe(first);
    expect(out).toContain(about);
  });

  test("a verdict names its deal, its parties, and what it supersedes, without steering the terminal", async () => {
    const { out } = await run(["full-verdict.json", ...PINNED, ...AT]);
    expect(out).toMatch(/^[\x20-\x7e\n]+$/);
    expect(out).toContain('deal "deal\\u202e7"');
    expect(out).toContain(`payer ${wallet}, as the claim names it`);
    expect(out).toContain(`payee ${OTHER}, as the claim names it`);
    expect(out).toContain(`it supersedes the verdict ${"ef".repeat(16)}`);
  });

  test.each([
    ["that it is verified", ["verified.json", "--require", "verified"]],
    ["two things in one option", ["verified.json", "--require", "verified,can_pay"]],
    ["one thing in each of two options", ["verified.json", "--require", "verified", "--require", "can_pay"]],
    ["one capability beside a FAIL in another", ["credential.json", "--require", "can_pay"]],
    ["its wallet, in another case", ["verified.json", "--wallet", wallet.toUpperCase().replace("0X", "0x")]],
    ["both", ["other-fail.json", "--require", "can_pay", "--wallet", wallet]],
    ["that a seller is verified", ["seller.json", "--require", "verified"]],
  ])("a requirement that holds: %s", async (_, args) => {
    const { code, out } = await run([...args, ...PINNED, ...AT]);
    expect({ code, out }).toEqual({ code: 0, out: expect.not.stringContaining("NOT AS REQUIRED") });
  });
});

describe("exit code 3: authentic, and not as required", () => {
  const cannot = "and only a wallet's or a seller's credential can say that";
  test.each([
    ["a FAIL beside a PASS", ["credential.json", "--require", "verified"], "not verified: FAIL in scam"],
    [
      "a FAIL of the capability",
      ["other-fail.json", "--require", "scam_resistance"],
      "no fresh PASS for scam_resistance",
    ],
    ["no such test", ["verified.json", "--require", "verified,retry_safety"], "no fresh PASS for retry_safety"],
    ["the first of two options", ["credential.json", "--require", "verified", "--require", "can_pay"], "FAIL in scam"],
    ["no test at all", ["untested.json", "--require", "verified"], "not verified: never tested"],
    ["a reversed PASS", ["lapsed.json", "--require", "can_pay"], "no fresh PASS for can_pay"],
    ["another wallet", ["verified.json", "--wallet", OTHER], `it is about wallet ${wallet}, not about wallet ${OTHER}`],
    [
      "a verified wallet, and another one",
      ["verified.json", "--require", "verified", "--wallet", OTHER],
      "not about wallet",
    ],
    [
      "a seller in place of a wallet",
      ["seller.json", "--require", "verified", "--wallet", wallet],
      "seller https://shop",
    ],
    ["a seller's credential for a capability", ["seller.json", "--require", "can_pay"], "no fresh PASS for can_pay"],
    ["one certificate", ["certificate.json", "--require", "verified"], cannot],
    ["a verdict", ["full-verdict.json", "--require", "verified"], cannot],
    ["a verdict about two wallets", ["full-verdict.json", "--wallet", wallet], `not about wallet ${wallet}`],
    ["a document of no known type", ["verdict.json", "--require", "verified"], cannot],
  ])("%s", async (_, args, said) => {
    const { code, out, err } = await run([...args, ...PINNED, ...AT]);
    expect({ code, err }).toEqual({ code: 3, err: "" });
    expect(out).toMatch(/^valid/);
    expect(out).toMatch(new RegExp(`\nNOT AS REQUIRED: .*${said.replaceAll(/[()]/g, "\\$&")}`));
    const { shortcomings } = JSON.parse((await run([...args, ...PINNED, ...AT, "--json"])).out);
    expect(shortcomings.join()).toContain(said);
  });

  test("what is forged or expired stays 1, whatever is required", async () => {
    const required = ["--require", "verified", "--wallet", wallet];
    expect(await run(["forged.json", ...PINNED, ...AT, ...required])).toMatchObject({ code: 1 });
    const { code, out } = await run(["verified.json", ...PINNED, ...AFTER, ...required]);
    expect(code).toBe(1);
    expect(out).toMatch(new RegExp(`^NOT VALID\n(.*\n)*  about {6}wallet ${wallet}\n  said {7}verified\n`));
  });
});
