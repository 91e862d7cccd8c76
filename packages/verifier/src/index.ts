// The library: it runs in browsers and in Node 22 or newer, and imports nothing specific to either.
export { fetchText } from "./fetch-text.ts";
export type { Freshness } from "./freshness.ts";
export { type Issuer, parseIssuer } from "./issuer.ts";
export { type KeySet, parseKeySet } from "./key-set.ts";
export { type Check, checkSigned, type Expected, type SignedReport } from "./offer-receipt/check.ts";
export { InputError, type RefusalCode } from "./refusal.ts";
export { type Difference, type Replay, replayScores } from "./score/replay.ts";
export * as bands from "./score/v3/bands.ts";
export { scoreDocument } from "./score/v3/document.ts";
export type { ScoreFacts } from "./score/v3/facts.ts";
export { parseScoreFacts } from "./score/v3/parse-facts.ts";
export type { Assessment, ScoreDocument } from "./score/v3/record.ts";
export { score } from "./score/v3/score.ts";
export { checkStatement, type ExpectedStatement, type StatementReport } from "./settlement/check-statement.ts";
export { replayVerdict, type VerdictReplay } from "./verdict/replay.ts";
export { type Expectation, type Report, type Signature, verifyDocument } from "./verify-document.ts";
