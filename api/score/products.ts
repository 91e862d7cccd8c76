/** SPEC.md, paid routes. Atomic USDC. */
export const SCORE_PRICES = { one: 100_000n, batch: 500_000n } as const;

/** The most wallets one payment can score (SPEC.md, limits). */
export const MAX_WALLETS = 25;
