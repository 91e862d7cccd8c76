/** The product of a paid tool: a path of the service and its published price, in atomic units of USDC. */
export interface Product {
  readonly path: string;
  /** A more expensive offer is refused unless the caller's max_price allows it. */
  readonly price: bigint;
}

export const PRODUCTS = {
  score: { path: "/score", price: 100_000n },
  batch: { path: "/score/batch", price: 500_000n },
  basic: { path: "/test/basic", price: 250_000n },
  suite: { path: "/test/suite", price: 750_000n },
  verdict: { path: "/arbiter/verify", price: 250_000n },
  scoredVerdict: { path: "/arbiter/verify/scored", price: 600_000n },
} as const satisfies Readonly<Record<string, Product>>;

/** The service's limits. Its own constants are the source; its tests keep these in sync. */
export const LIMITS = {
  /** The maximum number of wallets that one payment scores. */
  batchWallets: 25,
  /** The time for which a certificate is fresh. */
  certificateDays: 30,
  /** Days of a wallet's payment history in its record. */
  activityDays: 90,
  /** The time after which anyone may have a held payment refunded. */
  escrowTimeoutMinutes: 30,
} as const;
