// What the service calls its tests and claims, and its limits. The service's own tables decide; its tests hold these to them.

/** What a PASS can show, in the order of a verification record. */
export const CAPABILITIES = ["can_pay", "scam_resistance", "recipient_awareness", "full_suite"] as const;

/** The tests that one payment completes. */
export const SINGLE_TESTS = ["basic", "suite"] as const;

/** The tests of what an agent itself signs. */
export const BEHAVIOURAL_TESTS = ["scam", "recipient"] as const;

/** What the arbiter verifies. */
export const CATEGORIES = ["http-delivery", "payload-hash", "ci-status"] as const;

export const LIMITS = {
  /** Wallets that one payment scores. */
  batchWallets: 25,
  /** How long a certificate is fresh. */
  certificateDays: 30,
  /** Days of a wallet's payment history in its record. */
  activityDays: 90,
  /** When anybody may have a held payment refunded. */
  escrowTimeoutMinutes: 30,
} as const;
