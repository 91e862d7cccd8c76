// The service's names for its tests and claims, and its limits. The service's own tables are the source; its tests keep
// these in sync.

/** What a PASS can prove, in the order of a verification record. */
export const CAPABILITIES = [
  "can_pay",
  "scam_resistance",
  "recipient_awareness",
  "full_suite",
  "retry_safety",
] as const;

/** The tests that a single payment completes. */
export const SINGLE_TESTS = ["basic", "suite"] as const;

/** The tests of an agent's own signing behavior. */
export const BEHAVIORAL_TESTS = ["scam", "recipient", "retry"] as const;

/** What the arbiter verifies. */
export const CATEGORIES = ["http-delivery", "payload-hash", "ci-status", "offer-breach"] as const;

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
