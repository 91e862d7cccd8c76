import { answered, type Completion, jsonAnswer } from "../platform/http/answer.ts";
import type { Sale } from "../platform/http/route.ts";
import type { Signed, Signer } from "../platform/signing/document.ts";
import type { Address } from "../platform/wallet.ts";
import type { TestOrder } from "./agent-registries/order.ts";
import type { Publication } from "./agent-registries/publication.ts";
import type { PublicationStore } from "./agent-registries/store.ts";
import type { MarkedCertificate, ShownCertificate } from "./certificate.ts";
import { certificateDocument, credential, issue } from "./issue.ts";
import type { Kind } from "./kinds/kind.ts";
import type { CertificateStore, VerificationReader } from "./store.ts";
import { type RecordSettings, verificationRecord } from "./verification.ts";

export interface CertificationParts extends RecordSettings {
  readonly certificates: CertificateStore;
  readonly verifications: VerificationReader;
  readonly publications: Pick<PublicationStore, "ordering" | "of" | "document">;
  readonly signer: Signer;
  readonly now: () => Date;
}

export interface Certification {
  /** Judges one settled test run. The certificate is stored in the same transaction as the answer. */
  certify(kind: Kind, sale: Sale<TestOrder>): Completion;
  certificate(id: string): Promise<MarkedCertificate | null>;
  /** Returns the facts that the certificate's badge shows. */
  shown(id: string): Promise<ShownCertificate | null>;
  /** Returns the publications of a certificate in other registries, including planned ones. */
  publications(id: string): Promise<readonly Publication[]>;
  /** Returns the credential that publications name, byte for byte, or null if there is none. */
  publishedCredential(id: string): Promise<string | null>;
  verification(wallet: Address): Promise<ReturnType<typeof verificationRecord>>;
  /** Returns the verification record, signed for verification elsewhere. */
  credential(wallet: Address): Promise<Signed<ReturnType<typeof credential>>>;
}

const isId = (text: string): boolean => /^[0-9a-f]{16}$/.test(text);

export function createCertification(parts: CertificationParts): Certification {
  const { certificates, verifications, publications, signer, baseUrl, now } = parts;
  const verification = async (wallet: Address, at: Date) =>
    verificationRecord(await verifications.facts(wallet, at), parts, at);
  return {
    certify(kind, sale) {
      const certificate = issue(kind, sale, now());
      const answer = jsonAnswer(certificateDocument(certificate, baseUrl), { location: `/cert/${certificate.id}` });
      const adding = certificates.adding(certificate, { payment: sale.payment, also: null });
      const { input: order, settlement } = sale;
      return answered(answer, [
        adding,
        ...(order === null ? [] : publications.ordering(certificate.id, order, settlement.block)),
      ]);
    },
    certificate: (id) => (isId(id) ? certificates.get(id) : Promise.resolve(null)),
    shown: (id) => (isId(id) ? certificates.shown(id) : Promise.resolve(null)),
    publications: (id) => publications.of(id),
    publishedCredential: (id) => (isId(id) ? publications.document(id) : Promise.resolve(null)),
    verification: (wallet) => verification(wallet, now()),
    async credential(wallet) {
      const at = now();
      const record = await verification(wallet, at);
      return signer.sign(credential(record, signer.issuer, `${baseUrl}/credential/${wallet}`), at);
    },
  };
}
