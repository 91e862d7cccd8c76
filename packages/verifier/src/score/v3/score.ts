import { assess } from "../v1/score.ts";
import { judgeEscrow } from "../v2/escrow.ts";
import type { ScoreFacts as ScoreFactsV2 } from "../v2/facts.ts";
import { SCORE_VERSION } from "./bands.ts";
import type { ScoreFacts } from "./facts.ts";
import type { Assessment } from "./record.ts";

/**
 * The risk score of a wallet: score_version 3, a pure function in whole numbers. The same facts give the same answer,
 * in whatever order. `facts` satisfy `parseScoreFacts`.
 */
export function score(facts: ScoreFacts): Assessment {
  const known = asV2(facts);
  return assess(known, judgeEscrow(known), SCORE_VERSION);
}

/** The same to version 2: what was looked up is known as in an index of everything. */
const asV2 = ({ chain: { lookup: _, ...chain }, ...facts }: ScoreFacts): ScoreFactsV2 => ({
  ...facts,
  chain: {
    ...chain,
    scope: chain.scope === "authorised" ? "authorised" : "full",
    payees: chain.payees.map(({ payers: _, ...payee }) => payee),
  },
});
