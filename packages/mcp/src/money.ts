const UNITS_PER_USD = 1_000_000n;

/** US dollars with at most six decimals, like "0.25", in atomic units of USDC; null for any other text. */
export function parseUsd(text: string): bigint | null {
  const [, whole, decimals = ""] = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  return whole === undefined ? null : BigInt(whole) * UNITS_PER_USD + BigInt(decimals.padEnd(6, "0"));
}

/** Atomic units of USDC as US dollars, with two decimals or as many as it needs. */
export function formatUsd(atomic: bigint): string {
  const decimals = String(atomic % UNITS_PER_USD).padStart(6, "0");
  return `${atomic / UNITS_PER_USD}.${decimals.replace(/0{1,4}$/, "")}`;
}
