import { MAIN_NETWORK } from "../platform/networks.ts";
import type { verificationRecord } from "./verification.ts";

type VerificationRecord = ReturnType<typeof verificationRecord>;

/**
 * The second context gives terms that the first leaves undefined an issuer-dependent meaning (VC Data Model 2.0,
 * section 5.2).
 */
export const CONTEXT = [
  "https://www.w3.org/ns/credentials/v2",
  "https://www.w3.org/ns/credentials/undefined-terms/v2",
] as const;

/**
 * A verification record as an unsigned W3C Verifiable Credential (data model 2.0). It expires with the first of its
 * certificates that still count. Without any, time makes nothing in it false, and there is no `validUntil`.
 * @param issuer the service's did:web identifier
 * @param url where to find the wallet's newest credential
 */
export function credential(record: VerificationRecord, issuer: string, url: string) {
  const { wallet, tested, verified, verified_means, capabilities, certs, checked_at } = record;
  const ends = certs.flatMap(({ fresh, valid_until }) => (fresh ? [valid_until] : [])).sort();
  return {
    "@context": CONTEXT,
    id: url,
    type: ["VerifiableCredential", "AgentPaymentCredential"],
    issuer,
    validFrom: checked_at,
    ...(ends[0] === undefined ? {} : { validUntil: ends[0] }),
    credentialSubject: {
      id: `did:pkh:${MAIN_NETWORK}:${wallet}`,
      wallet,
      tested,
      verified,
      verified_means,
      capabilities,
      conformance: certs.map(({ age_days: _, badge_url: __, ...lasting }) => lasting),
    },
  };
}
