import type { Activity } from "../kernel/activity.ts";
import type { PaymentKey } from "../kernel/route.ts";
import type { Transaction } from "../kernel/transaction.ts";
import type { Address } from "../kernel/wallet.ts";
import type { Certificate, MarkedCertificate } from "./certificate.ts";

/** Certificates are permanent: they are added and read, never changed. */
export interface CertificateStore {
  add(certificate: Certificate, payment: PaymentKey, transaction: Transaction): Promise<void>;
  get(id: string): Promise<MarkedCertificate | null>;
  /** The newest 100 of a wallet and every failure that is still current, newest first. */
  ofWallet(wallet: Address, now: Date): Promise<readonly MarkedCertificate[]>;
}

export interface ActivityIndex {
  /** Null when the index cannot be read. */
  activity(wallet: Address, now: Date): Promise<Activity | null>;
}
