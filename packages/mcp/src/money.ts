const UNITS_PER_USD = 1_000_000n;

/** Parses US dollars with at most six decimals, such as "0.25", into atomic units of USDC; null for any other text. */
export function parseUsd(text: string): bigint | null {
  const [, whole, decimals = ""] = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  return whole === undefined ? null : BigInt(whole) * UNITS_PER_USD + BigInt(decimals.padEnd(6, "0"));
}

/** Formats atomic units of USDC as US dollars, with at least two decimals. */
export function formatUsd(atomic: bigint): string {
  const decimals = String(atomic % UNITS_PER_USD).padStart(6, "0");
  return `${atomic / UNITS_PER_USD}.${decimals.replace(/0{1,4}$/, "")}`;
}

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
