import { isFresh, type MarkedCertificate } from "./certificate.ts";

/** What a verification says of a certificate. */
export type CertificateSummary = Pick<
  MarkedCertificate,
  "id" | "product" | "testVersion" | "result" | "level" | "issuedAt" | "validUntil" | "reversedAt"
>;

/** Fresh, and not reversed. */
export const isCurrent = (certificate: CertificateSummary, now: Date): boolean =>
  certificate.reversedAt === null && isFresh(certificate, now);
