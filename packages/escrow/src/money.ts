/**
 * Parses an amount into atomic units of USDC (1 USD is 1,000,000).
 * @param amount US dollars as a decimal string like "0.10", or atomic units as a bigint
 * @throws TypeError if it is neither, not positive, or finer than an atomic unit
 */
export function parseAmount(amount: string | bigint): bigint {
  const atomic = typeof amount === "bigint" ? amount : fromUsd(amount);
  if (atomic === null || atomic <= 0n || atomic >= 2n ** 120n) {
    throw new TypeError(
      `An amount must be US dollars with at most 6 decimals, like "0.10", or atomic units, like 100000n; got ${JSON.stringify(String(amount))}.`,
    );
  }
  return atomic;
}

function fromUsd(text: string): bigint | null {
  const [, whole, decimals = ""] = /^(\d{1,30})(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  return whole === undefined ? null : BigInt(whole) * 1_000_000n + BigInt(decimals.padEnd(6, "0"));
}

/** Formats atomic units of USDC as US dollars, with at least two decimals. */
export const formatUsd = (atomic: bigint): string => {
  const decimals = String(atomic % 1_000_000n).padStart(6, "0");
  return `${atomic / 1_000_000n}.${decimals.slice(0, 2)}${decimals.slice(2).replace(/0+$/, "")}`;
};
