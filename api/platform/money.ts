/** An amount of USDC in its smallest unit (10⁻⁶ USD). */
export type Atomic = bigint;

/** `250000n` → `0.25`, `1_234_560n` → `1.23456`: at least two decimals, never a float. */
export function formatUsd(atomic: Atomic): string {
  const digits = atomic.toString().padStart(7, "0");
  const fraction = digits.slice(-6).replace(/0{1,4}$/, "");
  return `${digits.slice(0, -6)}.${fraction}`;
}

/** Like `formatUsd`, but whole dollars have no decimals: `50_000_000n` → `50`. */
export const briefUsd = (atomic: Atomic): string => formatUsd(atomic).replace(/\.00$/, "");
