import { answered, type Completion, jsonAnswer } from "../platform/http/answer.ts";
import type { Sale } from "../platform/http/route.ts";
import type { Signer } from "../platform/signing/document.ts";
import type { Address } from "../platform/wallet.ts";
import type { TestOrder } from "./agent-registries/order.ts";
import type { PublicationStore } from "./agent-registries/store.ts";
import { certificateDocument, credential, issue } from "./issue.ts";
import type { Kind } from "./kinds/kind.ts";
import type { CertificateStore, VerificationReader } from "./store.ts";
import { type RecordSettings, verificationRecord } from "./verification.ts";

interface CertificationParts extends RecordSettings {
  readonly certificates: CertificateStore;
  readonly verifications: VerificationReader;
  readonly publications: Pick<PublicationStore, "ordering" | "of" | "document">;
  readonly signer: Signer;
  readonly now: () => Date;
}

export type Certification = ReturnType<typeof createCertification>;

const isId = (text: string): boolean => /^[0-9a-f]{16}$/.test(text);

export function createCertification(parts: CertificationParts) {
  const { certificates, verifications, publications, signer, baseUrl, now } = parts;
  const verification = async (wallet: Address, at: Date) =>
    verificationRecord(await verifications.facts(wallet, at), parts, at);
  return {
    /** Judges one settled test run. The certificate is stored in the same transaction as the answer. */
    certify(kind: Kind, sale: Sale<TestOrder>): Completion {
      const certificate = issue(kind, sale, now());
      const answer = jsonAnswer(certificateDocument(certificate, baseUrl), { location: `/cert/${certificate.id}` });
      const adding = certificates.adding(certificate, { payment: sale.payment, also: null });
      const { input: order, settlement } = sale;
      return answered(answer, [
        adding,
        ...(order === null ? [] : publications.ordering(certificate.id, order, settlement.block)),
      ]);
    },
    certificate: async (id: string) => (isId(id) ? certificates.get(id) : null),
    shown: async (id: string) => (isId(id) ? certificates.shown(id) : null),
    /** Returns the publications of a certificate in other registries, including planned ones. */
    publications: (id: string) => publications.of(id),
    /** Returns the credential that publications name, byte for byte, or null if there is none. */
    publishedCredential: async (id: string) => (isId(id) ? publications.document(id) : null),
    verification: (wallet: Address) => verification(wallet, now()),
    /** Returns the verification record, signed for verification elsewhere. */
    async credential(wallet: Address) {
      const at = now();
      const record = await verification(wallet, at);
      return signer.sign(credential(record, signer.issuer, `${baseUrl}/credential/${wallet}`), at);
    },
  };
}
