// The library: it runs in browsers and in Node 22 or newer, and imports nothing of either.
export { fetchText } from "./fetch-text.ts";
export type { Freshness } from "./freshness.ts";
export { type Issuer, parseIssuer } from "./issuer.ts";
export { type KeySet, parseKeySet } from "./key-set.ts";
export { InputError, type RefusalCode } from "./refusal.ts";
export * as bands from "./score/bands.ts";
export { scoreDocument } from "./score/document.ts";
export type { ScoreFacts } from "./score/facts.ts";
export { parseScoreFacts } from "./score/parse-facts.ts";
export type { Assessment, ScoreDocument } from "./score/record.ts";
export { type Difference, type Replay, replayScores } from "./score/replay.ts";
export { score } from "./score/score.ts";
export { type Expectation, type Report, type Signature, verifyDocument } from "./verify-document.ts";
