/** The service's limits. Its own constants are the source; its tests keep these in sync. */
export const LIMITS = {
  /** The most wallets one payment scores. */
  batchWallets: 25,
  /** How long a certificate is fresh. */
  certificateDays: 30,
  /** Days of a wallet's payment history in its record. */
  activityDays: 90,
  /** When anyone may have a held payment refunded. */
  escrowTimeoutMinutes: 30,
} as const;
