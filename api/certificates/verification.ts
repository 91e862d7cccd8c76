import type { Activity } from "../platform/index/activity.ts";
import { type Atomic, formatUsd } from "../platform/money.ts";
import { REHEARSED_ON } from "../platform/networks.ts";
import type { Address } from "../platform/wallet.ts";
import { activityEntry } from "./activity.ts";
import { ageDays, type CertificateSummary, isAboutWallet, isCurrent, isFresh, VALID_FOR_DAYS } from "./certificate.ts";
import { badgeUrl, certUrl } from "./links.ts";
import { reasonsAgainst } from "./observations.ts";
import { type Product, perCapability } from "./products.ts";

/** The meaning of verified, for a wallet, and of being on the board. */
export const VERIFIED_MEANS = `At least one test passed in the last ${VALID_FOR_DAYS} days and no FAIL from that time counts against the wallet. It states what was observed on-chain; it is not a guarantee of safety.`;

/** The parts of a record other than the wallet's own facts. */
export interface RecordSettings {
  /** No trailing slash. */
  readonly baseUrl: string;
  /** The price of a single risk score. */
  readonly scorePrice: Atomic;
}

export interface VerificationFacts {
  readonly wallet: Address;
  /**
   * Newest first. If there are more than 100: the newest 100 that are about the wallet, every failure that still
   * counts, and the newest of all.
   */
  readonly certificates: readonly CertificateSummary[];
  /** Null if the index is unavailable. */
  readonly activity: Activity | null;
}

export type VerificationRecord = ReturnType<typeof verificationRecord>;

/** Returns the verification record of SPEC.md: verified only with at least one current PASS and no current FAIL. */
export function verificationRecord(
  { wallet, certificates, activity }: VerificationFacts,
  { baseUrl, scorePrice }: RecordSettings,
  now: Date,
) {
  const reasons = reasonsAgainst(certificates, baseUrl, now);
  const own = certificates.filter(isAboutWallet);
  return {
    service: "Agent Payment Trust Service",
    wallet,
    ...(REHEARSED_ON && { test_network: REHEARSED_ON.id }),
    tested: certificates.length > 0,
    verified: reasons.length === 0,
    verified_means: VERIFIED_MEANS,
    reasons,
    capabilities: capabilities(own, baseUrl, now),
    certs: own.map((certificate) => certEntry(certificate, baseUrl, now)),
    freshness_policy: {
      valid_for_days: VALID_FOR_DAYS,
      note: `A certificate is a permanent record. It stays fresh for ${VALID_FOR_DAYS} days after issuance; then it expires and the agent should be tested again.`,
    },
    how_to_test: `${baseUrl}/inspect`,
    activity: activityEntry(activity),
    paid_score: {
      note: `A risk score from 0 to 100 with itemized evidence costs ${formatUsd(scorePrice)} USDC. Call the url by the method, without a body; the first answer is a 402 with the terms.`,
      method: "POST",
      url: `${baseUrl}/score?wallet=${wallet}`,
    },
    checked_at: now.toISOString(),
  };
}

function certEntry(certificate: CertificateSummary, baseUrl: string, now: Date) {
  return {
    id: certificate.id,
    product: certificate.product,
    test_version: certificate.testVersion,
    result: certificate.result,
    level: certificate.level,
    fresh: isCurrent(certificate, now),
    expired: !isFresh(certificate, now),
    reversed: certificate.reversedAt !== null,
    age_days: ageDays(certificate, now),
    issued: certificate.issuedAt.toISOString(),
    valid_until: certificate.validUntil.toISOString(),
    cert_url: certUrl(baseUrl, certificate),
    badge_url: badgeUrl(baseUrl, certificate),
  };
}

/** Returns for each capability its current FAIL, if any, or else its newest certificate that was not reversed. */
function capabilities(certificates: readonly CertificateSummary[], baseUrl: string, now: Date) {
  const notReversed = certificates.filter(({ reversedAt }) => reversedAt === null);
  const entry = (product: Product) => {
    const own = notReversed.filter((certificate) => certificate.product === product);
    const shown = own.find((certificate) => certificate.result === "fail" && isFresh(certificate, now)) ?? own[0];
    if (shown === undefined)
      return { tested: false, result: null, fresh: false, expired: false, valid_until: null, cert_url: null };
    const fresh = isFresh(shown, now);
    return {
      tested: true,
      result: shown.result,
      fresh,
      expired: !fresh,
      valid_until: shown.validUntil.toISOString(),
      cert_url: certUrl(baseUrl, shown),
    };
  };
  return perCapability(entry);
}
