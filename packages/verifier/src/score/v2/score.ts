import { assess } from "../v1/score.ts";
import { SCORE_VERSION } from "./bands.ts";
import { judgeEscrow } from "./escrow.ts";
import type { ScoreFacts } from "./facts.ts";
import type { Assessment } from "./record.ts";

/**
 * The risk score of a wallet: score_version 2, a pure function in whole numbers. The same facts give the same answer,
 * in whatever order. `facts` satisfy `parseScoreFacts`.
 */
export const score = (facts: ScoreFacts): Assessment => assess(facts, judgeEscrow(facts), SCORE_VERSION);
