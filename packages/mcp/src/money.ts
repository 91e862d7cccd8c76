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
