import { formatUsd } from "./money.ts";

/** Thrown when the session's budget is spent; nothing was signed. */
export class OverBudget extends Error {}

/**
 * The limit on what one session may sign for, in atomic units. Everything signed counts, whatever its outcome, because
 * a signature can be settled.
 */
export interface Budget {
  readonly limit: bigint;
  readonly spent: () => bigint;
  /** @throws OverBudget if the amount exceeds the rest of the budget, which then remains unchanged */
  readonly take: (amount: bigint) => void;
}

export function createBudget(limit: bigint): Budget {
  let spent = 0n;
  return {
    limit,
    spent: () => spent,
    take(amount) {
      if (spent + amount > limit)
        throw new OverBudget(
          `This would cost ${formatUsd(amount)} USDC, but only ${formatUsd(limit - spent)} of the session's ${formatUsd(limit)} USDC budget is left. Nothing was signed. The user can raise the budget with SESSION_BUDGET_USD.`,
        );
      spent += amount;
    },
  };
}
