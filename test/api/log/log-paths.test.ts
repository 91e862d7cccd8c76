import { expect, test } from "vitest";
import { verdictPath } from "../../../api/arbiter/document.ts";
import { policyPath } from "../../../api/arbiter/overview.ts";
import { certUrl } from "../../../api/certificates/links.ts";
import { contestPath } from "../../../api/escrow/contest/contest-record.ts";
import { evaluationPath } from "../../../api/escrow/record.ts";
import { entryPath, logPath, proofPath, recordPath } from "../../../api/log/log-paths.ts";
import { ENTRY_TYPES, type EntryType } from "../../../packages/verifier/src/tlog/entry-types.ts";

const PAYMENT = `0x${"ab".repeat(32)}` as const;
const SELLER = "0123456789abcdef0123456789abcdef";
const CERTIFICATE = certUrl("", { id: "0123456789abcdef" });
const VERDICT = verdictPath("0123456789abcdef0123456789abcdef");

test.each<[EntryType, string, [record: string, proof: string]]>([
  ["certificate", "0123456789abcdef", [CERTIFICATE, `${CERTIFICATE}.tlog-proof`]],
  ["reversal", "0123456789abcdef", [CERTIFICATE, `${CERTIFICATE}.tlog-proof?type=reversal`]],
  ["proof", "0123456789abcdef", [CERTIFICATE, `${CERTIFICATE}.tlog-proof?type=proof`]],
  ["seller_certificate", SELLER, [`/cert/${SELLER}`, `/cert/${SELLER}.tlog-proof`]],
  ["seller_correction", SELLER, [`/cert/${SELLER}`, `/cert/${SELLER}.tlog-proof?type=seller_correction`]],
  ["verdict", "0123456789abcdef0123456789abcdef", [VERDICT, `${VERDICT}.tlog-proof`]],
  ["correction", "0123456789abcdef0123456789abcdef", [VERDICT, `${VERDICT}.tlog-proof`]],
  ["evaluation", PAYMENT, [evaluationPath(PAYMENT), `${evaluationPath(PAYMENT)}.tlog-proof`]],
  ["contest_answer", PAYMENT, [contestPath(PAYMENT), `${evaluationPath(PAYMENT)}.tlog-proof?type=contest_answer`]],
  ["policy", "2", [policyPath(2), "/log/entry/7.tlog-proof"]],
  ["score_version", "3", ["/docs#score", "/log/entry/7.tlog-proof"]],
  ["signing_key", "kid", ["/.well-known/jwks.json", "/log/entry/7.tlog-proof"]],
])("an entry of type %s about %s links its record and its proof: %j", (type, ref, [record, proof]) => {
  expect(recordPath({ type, ref })).toBe(record);
  expect(proofPath({ type, ref, generation: 1, index: 7 })).toBe(proof);
});

test("every type of entry is above", () => expect(ENTRY_TYPES).toHaveLength(12));

test("a later log has its number in its path, the first one has none", () => {
  expect([logPath(1), logPath(2)]).toEqual(["/log", "/log/2"]);
  expect(entryPath({ generation: 2, index: 0 })).toBe("/log/2/entry/0");
});
