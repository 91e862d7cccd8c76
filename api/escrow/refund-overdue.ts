import type { EscrowLimits } from "../platform/config/values.ts";
import type { CarryingParts } from "./carry-outcomes.ts";
import type { EscrowChain } from "./chain.ts";
import { type Hold, OUTCOME_GAS } from "./payment.ts";
import type { EscrowStore } from "./store.ts";

/** Holds that were not decided in time. */
export interface OverdueHolds {
  /** Held and past `refundable_from` (unix seconds), oldest first; null if the index does not answer. */
  overdue(now: number, page: { readonly limit: number; readonly after: Hold | null }): Promise<readonly Hold[] | null>;
}

/** How many overdue holds a pass looks at. */
const PAGE = 1_024;
/** Half of the day's gas is kept for holds of at least this much, in atomic USDC: dust cannot use it up. */
const WORTHWHILE = 1_000_000n;

export interface KeeperParts {
  readonly store: EscrowStore;
  readonly chain: EscrowChain;
  readonly overdue: OverdueHolds;
  readonly limits: EscrowLimits;
  readonly log: CarryingParts["log"];
}

/**
 * Refunds what was not decided within 30 minutes by the chain's clock, the most valuable of a page first, as far as the
 * day's gas goes. What it leaves anybody may refund. Each pass goes on where the last one ended, so that what stays
 * overdue hides nothing. Returns how many holds it took up.
 */
export function createKeeper({ store, chain, overdue, limits, log }: KeeperParts): () => Promise<number> {
  let after: Hold | null = null;
  const mayCost = ({ info }: Hold) => (info.maxAmount < WORTHWHILE ? limits.keeperGas / 2n : limits.keeperGas);
  return async () => {
    const page: readonly Hold[] = (await overdue.overdue(await chain.time(), { limit: PAGE, after })) ?? [];
    after = page.length < PAGE ? null : (page.at(-1) ?? null);
    const due = page.filter(({ info }) => info.maxAmount >= limits.minimum);
    let [taken, left] = [0, 0];
    for (const hold of due.toSorted(byValue)) {
      const became = await store.timeOut(hold, { gas: OUTCOME_GAS, most: mayCost(hold) });
      if (became === "stored") taken++;
      if (became === "spent") left++;
    }
    if (left > 0) log.warn({ holds: left }, "the day's gas for overdue holds is spent; their buyers can refund them");
    return taken;
  };
}

const byValue = ({ info: one }: Hold, { info: other }: Hold): number =>
  one.maxAmount < other.maxAmount ? 1 : one.maxAmount > other.maxAmount ? -1 : 0;
