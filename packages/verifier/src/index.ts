// The library. It runs in browsers and in Node 22 or newer, and imports nothing specific to either.
export { type Claims, claimsOf, standingOf } from "./claims.ts";
export { fetchText } from "./fetch-text.ts";
export type { Freshness } from "./freshness.ts";
export { type Issuer, parseIssuer } from "./issuer.ts";
export { type KeySet, parseKeySet } from "./key-set.ts";
export { type Check, checkSigned, type Expected, type SignedReport } from "./offer-receipt/check.ts";
export { documentUrlFor } from "./offer-receipt/speaker.ts";
export { readStatement } from "./offer-receipt/statement.ts";
export { InputError, type RefusalCode } from "./refusal.ts";
export {
  parseRequirements,
  REQUIREMENTS,
  type Required,
  type Requirement,
  shortcomings,
  unmet,
} from "./requirement.ts";
export * as bands from "./score/bands.ts";
export type { ScoreFacts } from "./score/facts.ts";
export { parseScoreFacts } from "./score/parse-facts.ts";
export type { Assessment, ScoreDocument } from "./score/record.ts";
export { type Difference, type Replay, replayScores } from "./score/replay.ts";
export { score, scoreDocument } from "./score/score.ts";
export { checkStatement, type ExpectedStatement, type StatementReport } from "./settlement/check-statement.ts";
export { type CheckLeftOut, checkLeftOut, type LeftOutReport } from "./tlog/check-left-out.ts";
export { type CheckListed, checkListed, type ListedReport } from "./tlog/check-listed.ts";
export { type CheckLogged, checkLogged, type LoggedReport, type Subject } from "./tlog/check-logged.ts";
export { bindEntry, type Entry, parseEntry } from "./tlog/entry.ts";
export { leafHash } from "./tlog/hash.ts";
export { formatKept, type KeptLogs, parseKept } from "./tlog/kept-log.ts";
export { type Policy, parsePolicy } from "./tlog/policy.ts";
export { type LogProof, type Proven, parseProof, verifyProof } from "./tlog/tlog-proof.ts";
export { hiddenBy, type LoggedCertificate } from "./tlog/wallet-log.ts";
export { replayVerdict, type VerdictReplay } from "./verdict/replay.ts";
export { type Expectation, type Report, type Signature, verifyDocument } from "./verify-document.ts";
