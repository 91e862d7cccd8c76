import { MAIN_NETWORK } from "../../platform/networks.ts";
import type { MarkedCertificate } from "../certificate.ts";
import { CONTEXT } from "../credential.ts";
import { certUrl, credentialUrl } from "../links.ts";

/**
 * One certificate as an unsigned W3C Verifiable Credential (data model 2.0). Unlike a wallet's credential it never
 * changes, so a registry can name its hash.
 * @param issuer the service's did:web identifier
 */
export const certificateCredential = (certificate: MarkedCertificate, issuer: string, baseUrl: string) => ({
  "@context": CONTEXT,
  id: credentialUrl(baseUrl, certificate),
  type: ["VerifiableCredential", "AgentPaymentCertificate"],
  issuer,
  validFrom: certificate.issuedAt.toISOString(),
  validUntil: certificate.validUntil.toISOString(),
  credentialSubject: {
    id: `did:pkh:${MAIN_NETWORK}:${certificate.wallet}`,
    wallet: certificate.wallet,
    certificate: certificate.id,
    product: certificate.product,
    test_version: certificate.testVersion,
    result: certificate.result,
    level: certificate.level,
    checks: certificate.checks,
    cert_url: certUrl(baseUrl, certificate),
  },
});
