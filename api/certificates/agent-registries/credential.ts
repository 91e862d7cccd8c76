import { z } from "zod";
import { address, count, time, url } from "../../platform/http/schema.ts";
import { MAIN_NETWORK } from "../../platform/networks.ts";
import type { Signed } from "../../platform/signing/document.ts";
import { PROOF } from "../../platform/signing/schemas.ts";
import type { MarkedCertificate } from "../certificate.ts";
import { CONTEXT } from "../issue.ts";
import { certUrl, credentialUrl } from "../links.ts";
import { CHECKS, CREDENTIAL, certificateId, product, result } from "../schemas.ts";

/**
 * Returns one certificate as an unsigned W3C Verifiable Credential (data model 2.0). Unlike a wallet's credential, it
 * never changes, so a registry can refer to its hash.
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

export const CERTIFICATE_CREDENTIAL = z
  .object({
    "@context": CREDENTIAL.shape["@context"],
    id: url,
    type: z.array(z.string()),
    issuer: CREDENTIAL.shape.issuer,
    validFrom: time,
    validUntil: time,
    credentialSubject: z.object({
      id: CREDENTIAL.shape.credentialSubject.shape.id,
      wallet: address,
      certificate: certificateId,
      product,
      test_version: count,
      result,
      level: z.string(),
      checks: CHECKS,
      cert_url: url,
    }),
    proof: PROOF,
  })
  .meta({ id: "CertificateCredential" }) satisfies z.ZodType<Signed<ReturnType<typeof certificateCredential>>>;
