import { UNATTRIBUTED_FAILS } from "../../packages/verifier/src/tlog/wallet-log.ts";
import { isFresh, type MarkedCertificate } from "./certificate.ts";

/** What a verification says of a certificate. */
export type CertificateSummary = Pick<
  MarkedCertificate,
  "id" | "product" | "testVersion" | "result" | "level" | "issuedAt" | "validUntil" | "reversedAt"
>;

/** False for a FAIL whose cause may lie with the one who asked for the payment: it counts neither for nor against. */
export const isAboutWallet = ({ product, result }: Pick<CertificateSummary, "product" | "result">): boolean =>
  result === "pass" || !UNATTRIBUTED_FAILS.includes(product);

/** Fresh, not reversed, and about the wallet. */
export const isCurrent = (certificate: CertificateSummary, now: Date): boolean =>
  certificate.reversedAt === null && isFresh(certificate, now) && isAboutWallet(certificate);
