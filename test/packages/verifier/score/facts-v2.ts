import type { EscrowFacts, ScoreFacts } from "../../../../packages/verifier/src/score/v2/facts.ts";
import { facts, transaction } from "./facts.ts";

/** Releases and refunds: how many buyers, and their buyer-days. */
export const outcomes = (
  [buyers, release_days]: readonly [number, number],
  [refunded_buyers, refund_days]: readonly [number, number],
): EscrowFacts => ({
  buyers,
  release_days,
  last_release_tx: release_days > 0 ? transaction(2) : null,
  refunded_buyers,
  refund_days,
  last_refund_tx: refund_days > 0 ? transaction(3) : null,
});

/** The facts of version 1 as version 2 has them. */
export const asV2 = (given: ReturnType<typeof facts>, escrow = outcomes([0, 0], [0, 0])): ScoreFacts => ({
  ...given,
  chain: { ...given.chain, escrow },
});

/** A wallet that has done nothing but what is given. */
export const factsV2 = (
  { escrow, ...chain }: Partial<ScoreFacts["chain"]> = {},
  certificates: ScoreFacts["certificates"] = [],
): ScoreFacts => asV2(facts(chain, certificates), escrow);
