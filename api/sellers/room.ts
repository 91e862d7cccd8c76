import { formatUsd } from "../platform/money.ts";
import type { Commitments } from "./ports.ts";
import { MOST_OPEN, mostSpent } from "./products.ts";

export interface Means extends Commitments {
  /** Of our account. */
  readonly balance: bigint;
  /** What exams may spend in 24 hours. */
  readonly daily: bigint;
}

/** Why no exam at this price can be sold at the moment; null if one can. */
export function noRoom({ open, openExams, owed, kept, signed, balance, daily }: Means, amount: bigint): string | null {
  if (openExams >= MOST_OPEN) return `${openExams} exams are open, and no more are sold until one has ended.`;
  const needed = open + mostSpent(amount);
  if (needed + owed + kept > balance) return "The account that exams pay from is short of funds at the moment.";
  if (signed + needed > daily)
    return `Exams may spend ${formatUsd(daily)} USDC in 24 hours, and that is used up for now.`;
  return null;
}
