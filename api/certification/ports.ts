import type { PaymentKey } from "../kernel/route.ts";
import type { Transaction } from "../kernel/transaction.ts";
import type { Address } from "../kernel/wallet.ts";
import type { Certificate, MarkedCertificate } from "./certificate.ts";
import type { VerificationFacts } from "./verification.ts";

/** Certificates are permanent: they are added and read, never changed. */
export interface CertificateStore {
  add(certificate: Certificate, payment: PaymentKey, transaction: Transaction): Promise<void>;
  get(id: string): Promise<MarkedCertificate | null>;
}

/** What `/verify` reads, in as few round trips as it takes. */
export interface VerificationReader {
  facts(wallet: Address, now: Date): Promise<VerificationFacts>;
}
