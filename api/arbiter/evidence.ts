import type { Fact, TransferKey } from "./policy/category.ts";
import type { Verdict } from "./policy/policy.ts";

/** What the arbiter saw for a claim, and what follows from it. */
export interface Evidence {
  readonly verdict: Verdict;
  /** What was observed and how every condition was judged: identical for the same claim and state. */
  readonly facts: readonly Fact[];
  /** When each look was taken (ISO 8601), kept out of the facts, which would otherwise differ by it. */
  readonly timeline: readonly { readonly source: string; readonly started_at: string; readonly finished_at: string }[];
  /** The transfer that a release or a refund decides: once, no matter who claims what about it. */
  readonly transfer?: TransferKey & {
    /** What follows if another verdict has decided it. */
    readonly decidedBefore: (verdict: string) => Evidence;
  };
}
