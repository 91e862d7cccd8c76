import type { ScoreFacts as ScoreFactsV2 } from "../../../../packages/verifier/src/score/v2/facts.ts";
import type { ScoreFacts } from "../../../../packages/verifier/src/score/v3/facts.ts";

/** The facts of version 2 as version 3 has them, where nothing was looked up. */
export const asV3 = (given: ScoreFactsV2): ScoreFacts => ({
  ...given,
  chain: { ...given.chain, lookup: null, payees: given.chain.payees.map((payee) => ({ ...payee, payers: null })) },
});
