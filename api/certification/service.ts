import type { Outcome, Sale } from "../kernel/route.ts";
import type { Address } from "../kernel/wallet.ts";
import type { MarkedCertificate } from "./certificate.ts";
import { certificateDocument, issue } from "./issue.ts";
import type { Kind } from "./kinds/kind.ts";
import type { CertificateStore, VerificationReader } from "./ports.ts";
import { verificationRecord } from "./verification.ts";

export interface CertificationParts {
  readonly certificates: CertificateStore;
  readonly verifications: VerificationReader;
  readonly baseUrl: string;
  readonly now: () => Date;
}

export interface Certification {
  /** Judges one settled test run; the certificate is stored in the transaction that stores the answer. */
  certify(kind: Kind, sale: Sale<unknown>): Promise<Outcome>;
  certificate(id: string): Promise<MarkedCertificate | null>;
  verification(wallet: Address): Promise<ReturnType<typeof verificationRecord>>;
}

export function createCertification({ certificates, verifications, baseUrl, now }: CertificationParts): Certification {
  return {
    async certify(kind, sale) {
      const certificate = issue(kind, sale, now());
      return {
        status: 200,
        body: certificateDocument(certificate, baseUrl),
        location: `/cert/${certificate.id}`,
        record: (transaction) => certificates.add(certificate, sale.payment, transaction),
      };
    },
    certificate: (id) => (/^[0-9a-f]{16}$/.test(id) ? certificates.get(id) : Promise.resolve(null)),
    async verification(wallet) {
      const at = now();
      return verificationRecord(await verifications.facts(wallet, at), baseUrl, at);
    },
  };
}
