import { answered, type Completion, jsonAnswer } from "../kernel/completion.ts";
import type { Sale } from "../kernel/route.ts";
import type { Address } from "../kernel/wallet.ts";
import type { Signed, Signer } from "../signing/document.ts";
import type { MarkedCertificate } from "./certificate.ts";
import type { CertificateStore, VerificationReader } from "./certificate-store.ts";
import { credential } from "./credential.ts";
import { certificateDocument, issue } from "./issue.ts";
import type { Kind } from "./kinds/kind.ts";
import { type RecordSettings, verificationRecord } from "./verification.ts";

export interface CertificationParts extends RecordSettings {
  readonly certificates: CertificateStore;
  readonly verifications: VerificationReader;
  readonly signer: Signer;
  readonly now: () => Date;
}

export interface Certification {
  /** Judges one settled test run; the certificate is stored in the same transaction as the answer. */
  certify(kind: Kind, sale: Sale<unknown>): Completion;
  certificate(id: string): Promise<MarkedCertificate | null>;
  verification(wallet: Address): Promise<ReturnType<typeof verificationRecord>>;
  /** The verification record, signed for verification elsewhere. */
  credential(wallet: Address): Promise<Signed<ReturnType<typeof credential>>>;
}

export function createCertification(parts: CertificationParts): Certification {
  const { certificates, verifications, signer, baseUrl, now } = parts;
  const verification = async (wallet: Address, at: Date) =>
    verificationRecord(await verifications.facts(wallet, at), parts, at);
  return {
    certify(kind, sale) {
      const certificate = issue(kind, sale, now());
      const answer = jsonAnswer(certificateDocument(certificate, baseUrl), { location: `/cert/${certificate.id}` });
      return answered(answer, [certificates.adding(certificate, { payment: sale.payment, also: null })]);
    },
    certificate: (id) => (/^[0-9a-f]{16}$/.test(id) ? certificates.get(id) : Promise.resolve(null)),
    verification: (wallet) => verification(wallet, now()),
    async credential(wallet) {
      const at = now();
      const record = await verification(wallet, at);
      return signer.sign(credential(record, signer.issuer, `${baseUrl}/credential/${wallet}`), at);
    },
  };
}
