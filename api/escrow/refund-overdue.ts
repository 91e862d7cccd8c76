import type { EscrowLimits } from "../platform/config/values.ts";
import type { CarryingParts } from "./carry-outcomes.ts";
import type { EscrowChain } from "./chain.ts";
import type { EscrowIndex } from "./index-store.ts";
import { type Hold, OUTCOME_GAS } from "./payment.ts";
import type { EscrowStore } from "./store.ts";

/** Overdue holds checked in one pass. */
const PAGE = 1_024;
/**
 * Half of the day's gas is reserved for holds of at least this amount, in atomic USDC, so that dust cannot use it up.
 */
const WORTHWHILE = 1_000_000n;

export interface KeeperParts {
  readonly store: EscrowStore;
  readonly chain: EscrowChain;
  readonly index: Pick<EscrowIndex, "overdue">;
  readonly limits: EscrowLimits;
  readonly log: CarryingParts["log"];
}

/**
 * Creates the keeper that refunds holds not decided within 30 minutes by the chain's clock, the most valuable of a page
 * first, within the day's budget of gas. Anyone may refund the rest. Each pass continues where the last one ended, so
 * that holds that stay overdue do not hide others. Returns the number of holds it took.
 */
export function createKeeper({ store, chain, index, limits, log }: KeeperParts): () => Promise<number> {
  let after: Hold | null = null;
  const mayCost = ({ info }: Hold) => (info.maxAmount < WORTHWHILE ? limits.keeperGas / 2n : limits.keeperGas);
  return async () => {
    const page: readonly Hold[] = (await index.overdue(await chain.time(), PAGE, after)) ?? [];
    after = page.length < PAGE ? null : (page.at(-1) ?? null);
    const due = page.filter(({ info }) => info.maxAmount >= limits.minimum);
    let [taken, left] = [0, 0];
    for (const hold of due.toSorted(byValue)) {
      const became = await store.timeOut(hold, { gas: OUTCOME_GAS, most: mayCost(hold) });
      if (became === "stored") taken++;
      if (became === "spent") left++;
    }
    if (left > 0)
      log.warn({ holds: left }, "the day's gas for overdue holds is spent, but their buyers can refund them");
    return taken;
  };
}

const byValue = ({ info: one }: Hold, { info: other }: Hold): number =>
  one.maxAmount < other.maxAmount ? 1 : one.maxAmount > other.maxAmount ? -1 : 0;
