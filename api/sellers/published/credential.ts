import { CONTEXT } from "../../certificates/credential.ts";
import { siteName } from "../record.ts";
import type { SellerVerification } from "./verification.ts";

/**
 * A site's record as an unsigned W3C Verifiable Credential (data model 2.0). It expires with the first of its
 * certificates that count.
 * @param issuer the service's did:web identifier
 * @param url where to find the origin's newest credential
 */
export function sellerCredential(record: SellerVerification, issuer: string, url: string) {
  const { origin, path_prefix: prefix, tested, verified, verified_means, certs, checked_at } = record;
  const ends = certs.flatMap(({ fresh, valid_until }) => (fresh ? [valid_until] : [])).sort();
  return {
    "@context": CONTEXT,
    id: url,
    type: ["VerifiableCredential", "SellerCredential"],
    issuer,
    validFrom: checked_at,
    ...(ends[0] === undefined ? {} : { validUntil: ends[0] }),
    credentialSubject: {
      id: siteName({ origin, prefix }),
      // Whoever reads the origin alone must not take a part for the whole.
      ...(prefix === "/" ? { origin } : {}),
      path_prefix: prefix,
      tested,
      verified,
      verified_means,
      conformance: certs.map(({ age_days: _, badge_url: __, ...lasting }) => lasting),
    },
  };
}
