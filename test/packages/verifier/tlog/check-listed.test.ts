import { describe, expect, test } from "vitest";
import { type CheckListed, checkListed } from "../../../../packages/verifier/src/tlog/check-listed.ts";
import { parsePolicy } from "../../../../packages/verifier/src/tlog/policy.ts";
import { FolderLog, noteSigner, witnessSigner } from "../../../support/log/memory-log.ts";
import { ISSUER, KEYS, STRANGER } from "../samples.ts";
import { certificate, listed, signer, WALLET } from "./signed-log.ts";

const [one, two, other] = [2, 3, 4].map((seed) => witnessSigner(`witness.example/w${seed}`, seed)) as [
  ReturnType<typeof witnessSigner>,
  ReturnType<typeof witnessSigner>,
  ReturnType<typeof witnessSigner>,
];
const policyOf = (...lines: string[]) => parsePolicy(`log ${signer.key.vkey}\n${lines.join("\n")}\n`);
const BOTH = policyOf(
  `witness one ${one.key.vkey}`,
  `witness two ${two.key.vkey}`,
  "group both all one two",
  "quorum both",
);

const log = new FolderLog(signer, one, two);
log.append(...Array.from({ length: 14 }, (_, index) => certificate(index)));

const serve = (id: string) => log.proof(Number(id.slice("cert-".length))).then((proof) => ({ proof }));
const check = (change: Partial<CheckListed> = {}) =>
  checkListed({
    wallet: WALLET,
    certificates: [listed(0), listed(1)],
    policy: BOTH,
    expected: { keys: KEYS, issuer: ISSUER },
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
  const stale = listed(2, "pass", { fresh: false });
  const report = await check({
    certificates: [listed(0), listed(1), stale],
    proofs: [await log.proof(0)],
    fetchProof,
  });
  expect(report).toMatchObject({ state: "proven", reason: expect.stringMatching(/witnessed as the policy requires/) });
  expect(report.entries).toMatchObject([
    { certificate: "cert-0", log: "trust.example/log", index: 0 },
    { certificate: "cert-1", index: 1, witnesses: [{ name: "one", at: "2026-09-21T14:13:20.000Z" }, { name: "two" }] },
  ]);
  // A supplied proof is not requested again, and a certificate that does not count is never requested.
  expect(asked).toEqual(["cert-1"]);
});

describe("an invalid proof", () => {
  const answer = (proof: string | Uint8Array) => ({ fetchProof: async () => ({ proof }) });
  test.each<[string, () => Promise<Partial<CheckListed>>, RegExp]>([
    [
      "with a changed entry",
      async () => {
        const proof = await log.proof(0);
        const extra = Buffer.from(certificate(0, { level: "gold" })).toString("base64");
        return { proofs: [proof.replace(/extra \S+/, `extra ${extra}`)] };
      },
      /inclusion_mismatch/,
    ],
    [
      "from a forged log",
      async () => {
        const own = new FolderLog(noteSigner("trust.example/log", 9), one, two);
        own.append(certificate(0));
        return { proofs: [await own.proof(0)] };
      },
      /note_not_signed|note_signature_mismatch/,
    ],
    [
      "with an entry signed by a stranger",
      async () => {
        const bad = new FolderLog(signer, one, two);
        bad.append(certificate(0, {}, STRANGER));
        return { proofs: [await bad.proof(0)] };
      },
      /the entry's document/,
    ],
    [
      "for another record, supplied",
      async () => ({ proofs: [await log.proof(5)] }),
      /entry_mismatch.*it is about "cert-5"/,
    ],
    ["for another record, served", async () => answer(await log.proof(5)), /entry_mismatch.*it is about "cert-5"/],
    ["for another wallet", async () => ({ wallet: `0x${"b2".repeat(20)}` }), /it belongs to the wallet/],
    ["with another result than listed", async () => ({ certificates: [listed(0, "fail")] }), /they differ in result/],
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
      fetchProof: async (id) => (id === "cert-1" ? { absent: "404" } : serve(id)),
    });
    expect(report).toMatchObject({ state: "refused", entries: [{ index: 0 }, { index: 2 }] });
  });
});

test("An absent proof is reported with its certificate and the reason", async () => {
  const fetchProof = async (id: string) => (id === "cert-1" ? { absent: "the service answered 404" } : serve(id));
  expect(await check({ fetchProof })).toMatchObject({
    state: "absent",
    reason: `There is no proof: cert-1: the service answered 404`,
    entries: [{ certificate: "cert-0" }],
  });
});

test("A list without a certificate that counts leaves nothing to check", async () => {
  expect(await check({ certificates: [] })).toMatchObject({ state: "not_checked", entries: [] });
  expect(await check({ certificates: [listed(0, "pass", { fresh: false })] })).toMatchObject({ state: "not_checked" });
});

test("For a long list, ten proofs are requested and the other certificates are named", async () => {
  const report = await check({ certificates: Array.from({ length: 14 }, (_, at) => listed(at)) });
  expect(report.entries).toHaveLength(10);
  expect(report).toMatchObject({
    state: "absent",
    reason: expect.stringMatching(/cert-10: not fetched.*cert-13: not/),
  });
});
