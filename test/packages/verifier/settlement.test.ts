import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { createSigner } from "../../../api/platform/signing/document.ts";
import type { Status } from "../../../api/settlement-status/decide.ts";
import { statementDocument } from "../../../api/settlement-status/statement.ts";
import type { StatementRequest } from "../../../api/settlement-status/statement-request.ts";
import { checkSettlement } from "../../../packages/verifier/src/commands/settlement.ts";
import { parseKeySet } from "../../../packages/verifier/src/key-set.ts";
import { checkStatement } from "../../../packages/verifier/src/settlement/check-statement.ts";
import { folderForFile } from "../../support/for-file.ts";
import { runCommand } from "../../support/packages/run-command.ts";
import { signAuthorization } from "../../support/payments/signing.ts";
import { BASE_URL, ISSUER, KEY, SAMPLE_NOW } from "./samples.ts";

const folder = await folderForFile("statement-");
const HASH = `0x${"ab".repeat(32)}` as const;
const PAYEE = `0x${"22".repeat(20)}` as const;
const authorization = {
  from: `0x${"11".repeat(20)}`,
  to: PAYEE,
  value: "250000",
  validAfter: "1000",
  validBefore: "2000",
  nonce: HASH,
} as const;
const jwks = JSON.stringify({ keys: [KEY.publicJwk] });
const keys = await parseKeySet(jwks);
const asOf = { number: 60, time: 5_000n };
const end = (time: bigint) => ({ transaction: HASH, block: { number: 50, hash: HASH, time }, transfer: null });
const settled = (time: bigint, transfer = { to: PAYEE, value: 250_000n }): Status => ({
  status: "settled",
  final: true,
  asOf,
  end: end(time),
  transfer,
});
const expired = (time: bigint): Status => ({
  status: "expired",
  final: true,
  asOf,
  finalBlock: { number: 55, hash: HASH, time },
});

/** A statement with these contents, signed by the service's key. */
function signed(status: Status, change: object = {}, request: Partial<StatementRequest> = {}): Promise<string> {
  const plain = { network: "eip155:8453", authorization, transaction: null, signature: null, signedAs: null } as const;
  const whole = { ...plain, ...request };
  const unsigned = statementDocument({
    id: "0".repeat(32),
    request: whole,
    status,
    issuer: ISSUER,
    issuedAt: SAMPLE_NOW,
  });
  return createSigner(KEY, ISSUER).signAsText({ ...unsigned, ...change }, SAMPLE_NOW);
}

const check = async (text: string | Promise<string>, expected: object = {}) =>
  checkStatement(await text, { keys, at: SAMPLE_NOW, ...expected });
const broken = async (...given: Parameters<typeof check>) => {
  const { valid, document, checks } = await check(...given);
  expect({ valid, document }).toEqual({ valid: false, document: null });
  return checks.filter(({ holds }) => !holds).map(({ statement }) => statement);
};

test.each([
  ["a settlement in the first second of its window", settled(1_001n)],
  ["a settlement in the last second of its window", settled(1_999n)],
  ["an end that a final block shows in its first second", expired(2_000n)],
  ["a cancellation", { status: "canceled", final: false, asOf, end: end(1_500n) }],
  ["a nonce that paid for something else", { ...settled(2_000n), status: "replaced" }],
  ["a pending payment", { status: "pending", final: false, asOf, window: "open" }],
] as [string, Status][])("The statement of %s is valid", async (_, status) => {
  expect(await check(signed(status), { authorization })).toMatchObject({ valid: true });
});

test("A signed statement that does not follow from its own facts is not valid", async () => {
  const transfer = "the transfer is the authorization's, in its window";
  expect(await broken(signed(settled(1_000n)))).toEqual([transfer]);
  expect(await broken(signed(settled(2_000n)))).toEqual([transfer]);
  expect(await broken(signed(settled(1_500n, { to: PAYEE, value: 1n })))).toEqual([transfer]);
  expect(await broken(signed(expired(1_999n)))).toEqual(["the final block is not before validBefore"]);
  expect(await broken(signed(expired(2_000n), { conditional_on: null }))).toEqual([
    "it states what it is conditional on",
  ]);
  expect(await broken(signed({ ...settled(1_500n), status: "replaced" } as Status))).toHaveLength(1);
  expect(await broken(signed(settled(1_500n), { type: "ArbiterVerdict" }))).toHaveLength(1);
  expect(await broken(signed(settled(1_500n), { settlement: {} }))).toHaveLength(2);
});

test("It must match every member of the expected authorization", async () => {
  const text = await signed(expired(2_000n), {}, { signedAs: "TransferWithAuthorization" });
  expect(await check(text, { authorization })).toMatchObject({ valid: true, document: { conditional_on: null } });
  for (const name of Object.keys(authorization))
    expect(await broken(text, { authorization: { ...authorization, [name]: "3" } })).toHaveLength(1);
  await expect(check(text, { authorization: { from: authorization.from } })).rejects.toThrow("has no to");
});

test("The payer's stated signature is recomputed and its signer recovered", async () => {
  const payer = privateKeyToAccount(`0x${"31".repeat(32)}`);
  const own = { ...authorization, from: payer.address.toLowerCase() as Hex } as const;
  const message = { ...own, value: 250_000n, validAfter: 1_000n, validBefore: 2_000n };
  const signature = await signAuthorization(payer, NETWORKS["eip155:8453"], message);
  const other = await signAuthorization(payer, NETWORKS["eip155:8453"], { ...message, validBefore: 9_000n });
  const text = await signed(expired(2_000n), {}, { signedAs: "TransferWithAuthorization", authorization: own });
  expect(await check(text, { signature })).toMatchObject({ valid: true });
  const byKey = "the signature is by the payer's own key (a contract wallet's is checked on its chain only)";
  for (const wrong of [other, "0x", `${signature}00`])
    expect(await broken(text, { signature: wrong })).toEqual([byKey]);

  const digest = "its digest is its authorization's";
  const { signature: stated } = JSON.parse(text);
  for (const change of [{ digest: HASH }, { primary_type: "ReceiveWithAuthorization" }, { primary_type: "Permit" }])
    expect(
      await broken(
        signed(expired(2_000n), { conditional_on: null, signature: { ...stated, ...change } }, { authorization: own }),
      ),
    ).toEqual([digest]);
  expect(await broken(signed(expired(2_000n)), { signature })).toEqual([
    "the payer's signature was shown to the issuer",
  ]);
});

test("Another issuer's signature or a changed word is refused", async () => {
  const text = await signed(settled(1_500n));
  expect((await check(text.replace('"settled"', '"expired"'))).signature).toMatchObject({ code: "jws_mismatch" });
  expect((await check(text, { issuer: "https://other.example" })).signature).toMatchObject({ code: "issuer_mismatch" });
});

test("The command checks statements offline", async () => {
  const write = async (name: string, text: string) => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };
  const pinned = await write("jwks.json", jwks);
  const named = await write("authorization.json", JSON.stringify(authorization));
  const run = (...args: readonly string[]) =>
    runCommand(() => checkSettlement(["--at", SAMPLE_NOW.toISOString(), ...args]));
  const good = await write("good.json", await signed(expired(2_000n)));
  const bad = await write("bad.json", await signed(expired(1_999n)));
  const valid = await run(good, "--jwks", pinned, "--issuer", BASE_URL, "--authorization", named);
  expect(valid).toMatchObject({ code: 0, text: expect.stringContaining('valid: "expired", final') });
  expect(valid.text).toContain("the payer's signature was not shown");
  expect(await run(bad, "--jwks", pinned)).toMatchObject({ code: 1, text: expect.stringContaining("NOT VALID") });
  expect(await run(good)).toMatchObject({ code: 2, text: expect.stringContaining("--issuer") });
});
