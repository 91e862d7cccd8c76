import { INDEPENDENCE } from "../../packages/verifier/src/score/bands.ts";
import { totalCost } from "../certificates/kinds/behavioural.ts";
import { BAITED_KINDS } from "../certificates/kinds/index.ts";
import { suite } from "../certificates/kinds/suite.ts";

/** What a forged history consists of. Value in atomic USDC. */
export interface Forgery {
  readonly counterparties: number;
  readonly payments: number;
  readonly value: bigint;
  readonly weeks: number;
}

/**
 * Two histories that reach an A with the three tests passed and no escrowed sale: one with the fewest wallets, one with
 * the fewest weeks. A test checks both against the score's own function, from both sides.
 */
export const FORGED_A = {
  fewWallets: { counterparties: 8, payments: 25, value: 5_000_000n, weeks: 5 },
  fewWeeks: { counterparties: 20, payments: 20, value: 1_000_000n, weeks: 4 },
} as const satisfies Readonly<Record<string, Forgery>>;

/** The wallets in such a ring: the agent, its payees, and the same payers for each payee, each with its own funder. */
export const ringSize = ({ counterparties }: Forgery): number => 1 + counterparties + 2 * INDEPENDENCE.otherFunders;

/** What the certificates for an A cost each time they expire. Atomic USDC. */
export const CERTIFICATES_COST = BAITED_KINDS.reduce((sum, kind) => sum + totalCost(kind), suite.price);
