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
