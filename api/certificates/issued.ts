import type { Certificate } from "./certificate.ts";
import { certificateDocument } from "./issue.ts";

/** The certificate as it was issued, without what a reader can derive. A reorganization may move its settlement later. */
export function issuedCertificate(certificate: Certificate) {
  const document = certificateDocument(certificate, "");
  const { conformance: _, cert_url: __, badge_url: ___, badge_markdown: ____, settlement, ...members } = document;
  const { transaction, network, block, amount, pay_to } = settlement;
  return { ...members, settlement: { transaction, network, block, amount, pay_to } };
}
