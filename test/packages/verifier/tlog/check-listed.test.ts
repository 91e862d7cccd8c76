import { describe, expect, test } from "vitest";
import { jcs } from "../../../../packages/verifier/src/jcs.ts";
import { parseKeySet } from "../../../../packages/verifier/src/key-set.ts";
import type { JsonObject } from "../../../../packages/verifier/src/strict-json.ts";
import { type CheckListed, checkListed } from "../../../../packages/verifier/src/tlog/check-listed.ts";
import { parsePolicy } from "../../../../packages/verifier/src/tlog/policy.ts";
import { FolderLog, noteSigner, witnessSigner } from "../../../support/log/memory-log.ts";
import { ISSUER, KEY, SAMPLE_NOW, STRANGER } from "../samples.ts";
import { sign } from "./signed-log.ts";

const WALLET = `0x${"a1".repeat(20)}`;
const signer = noteSigner("trust.example/log", 1);
const [one, two, other] = [2, 3, 4].map((seed) => witnessSigner(`witness.example/w${seed}`, seed)) as [
  ReturnType<typeof witnessSigner>,
  ReturnType<typeof witnessSigner>,
  ReturnType<typeof witnessSigner>,
];
const keys = await parseKeySet(JSON.stringify({ keys: [KEY.publicJwk] }));
const policyOf = (...lines: string[]) => parsePolicy(`log ${signer.key.vkey}\n${lines.join("\n")}\n`);
const BOTH = policyOf(
  `witness one ${one.key.vkey}`,
  `witness two ${two.key.vkey}`,
  "group both all one two",
  "quorum both",
);

const ids = Array.from({ length: 14 }, (_, at) => at.toString(16).padStart(16, "0"));
const certificate = (at: number) => ({
  id: ids[at] as string,
  product: "basic",
  test_version: "1.0.0",
  verdict: "pass",
  level: null,
  wallet: WALLET,
  issued_at: SAMPLE_NOW.toISOString(),
  valid_until: "2026-12-21T00:00:00.000Z",
  cert_url: `https://trust.example/cert/${ids[at]}`,
});
/** The certificate as a wallet's record lists it. */
const listed = (at: number, change: object = {}): JsonObject => {
  const { verdict: result, issued_at: issued, wallet: _, ...same } = certificate(at);
  return { ...same, result, issued, fresh: true, expired: false, reversed: false, ...change };
};
const CONTEXT = ["https://www.w3.org/ns/credentials/undefined-terms/v2"];
const entry = (index: number, key = KEY, change: object = {}) => {
  const members = { "@context": CONTEXT, issuer: ISSUER, type: "IssuedCertificate", ...certificate(index), ...change };
  const document = sign(members, key);
  return Buffer.from(jcs({ document, id: ids[index], index, type: "certificate", version: 1 } as never));
};

const log = new FolderLog(signer, one, two);
log.append(...ids.map((_, index) => entry(index)));

const serve = (id: string) => log.proof(ids.indexOf(id)).then((proof) => ({ proof }));
const check = (change: Partial<CheckListed> = {}) =>
  checkListed({
    wallet: WALLET,
    certificates: [listed(0), listed(1)],
    policy: BOTH,
    expected: { keys, issuer: ISSUER },
    proofs: [],
    fetchProof: serve,
    ...change,
  });

test("Certificates that count are proven, with supplied and with served proofs", async () => {
  const asked: string[] = [];
  const fetchProof = (id: string) => {
    asked.push(id);
    return serve(id);
  };
  const stale = listed(2, { fresh: false });
  const report = await check({
    certificates: [listed(0), listed(1), stale],
    proofs: [await log.proof(0)],
    fetchProof,
  });
  expect(report).toMatchObject({ state: "proven", reason: expect.stringMatching(/witnessed as the policy requires/) });
  expect(report.entries).toMatchObject([
    { certificate: ids[0], log: "trust.example/log", index: 0 },
    { certificate: ids[1], index: 1, witnesses: [{ name: "one", at: "2026-09-21T14:13:20.000Z" }, { name: "two" }] },
  ]);
  // A supplied proof is not requested again, and a certificate that does not count is never requested.
  expect(asked).toEqual([ids[1]]);
});

describe("an invalid proof", () => {
  const answer = (proof: string | Uint8Array) => ({ fetchProof: async () => ({ proof }) });
  test.each<[string, () => Promise<Partial<CheckListed>>, RegExp]>([
    [
      "with a changed entry",
      async () => {
        const proof = await log.proof(0);
        const extra = Buffer.from(entry(0, KEY, { level: "gold" })).toString("base64");
        return { proofs: [proof.replace(/extra \S+/, `extra ${extra}`)] };
      },
      /inclusion_mismatch/,
    ],
    [
      "from a forged log",
      async () => {
        const own = new FolderLog(noteSigner("trust.example/log", 9), one, two);
        own.append(entry(0));
        return { proofs: [await own.proof(0)] };
      },
      /note_not_signed|note_signature_mismatch/,
    ],
    [
      "with an entry signed by a stranger",
      async () => {
        const bad = new FolderLog(signer, one, two);
        bad.append(entry(0, STRANGER));
        return { proofs: [await bad.proof(0)] };
      },
      /the entry's document/,
    ],
    [
      "for another record, supplied",
      async () => ({ proofs: [await log.proof(5)] }),
      /entry_mismatch.*it is about "0+5"/,
    ],
    ["for another record, served", async () => answer(await log.proof(5)), /entry_mismatch.*it is about "0+5"/],
    ["for another wallet", async () => ({ wallet: `0x${"b2".repeat(20)}` }), /it belongs to the wallet/],
    [
      "with another result than listed",
      async () => ({ certificates: [listed(0, { result: "fail" })] }),
      /they differ in result/,
    ],
    [
      "below the quorum",
      async () => ({ policy: policyOf(`witness w ${other.key.vkey}`, "quorum w") }),
      /quorum_not_met/,
    ],
    [
      "from a log that the policy does not name",
      async () => ({ policy: parsePolicy(`log ${noteSigner("a.example/log", 3).key.vkey}\nquorum none\n`) }),
      /unknown_log/,
    ],
    ["that is a page", async () => answer("<!doctype html><p>No.\n\n</p>"), /malformed_log_proof/],
    ["that is empty", async () => answer(""), /malformed_log_proof/],
    ["that is too long", async () => answer("x".repeat(3_000_000)), /malformed_log_proof: .*longer than/],
    ["that is not text", async () => answer(Uint8Array.of(0xff, 0xfe)), /malformed_log_proof: .*UTF-8/],
  ])("A proof %s is refused", async (_, change, reason) => {
    expect(await check(await change())).toMatchObject({
      state: "refused",
      reason: expect.stringMatching(reason),
    });
  });

  test("A wrong proof outweighs correct and absent ones", async () => {
    const report = await check({
      certificates: [listed(0), listed(1), listed(2)],
      proofs: [await log.proof(5)],
      fetchProof: async (id) => (id === ids[1] ? { absent: "404" } : serve(id)),
    });
    expect(report).toMatchObject({ state: "refused", entries: [{ index: 0 }, { index: 2 }] });
  });
});

test("An absent proof is reported with its certificate and the reason", async () => {
  const fetchProof = async (id: string) => (id === ids[1] ? { absent: "the service answered 404" } : serve(id));
  expect(await check({ fetchProof })).toMatchObject({
    state: "absent",
    reason: `There is no proof: ${ids[1]}: the service answered 404`,
    entries: [{ certificate: ids[0] }],
  });
});

test("A list without a certificate that counts leaves nothing to check", async () => {
  expect(await check({ certificates: [] })).toMatchObject({ state: "not_checked", entries: [] });
  expect(await check({ certificates: [listed(0, { fresh: false })] })).toMatchObject({ state: "not_checked" });
});

test("For a long list, ten proofs are requested and the other certificates are named", async () => {
  const report = await check({ certificates: ids.map((_, at) => listed(at)) });
  expect(report.entries).toHaveLength(10);
  expect(report).toMatchObject({
    state: "absent",
    reason: expect.stringMatching(/0{15}a: not fetched.*0{15}d: not/),
  });
});
