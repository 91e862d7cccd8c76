import type { PaymentKey } from "../platform/http/route.ts";
import type { Statement } from "../platform/db/transaction.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { Certificate, MarkedCertificate, ShownCertificate } from "./certificate.ts";
import type { VerificationFacts } from "./verification.ts";

/** The settled payments a certificate rests on: if one of them is reversed, so is the certificate. */
export interface Grounds {
  readonly payment: PaymentKey;
  /** The nonce of a second payment by the same wallet. */
  readonly also: Hex | null;
  /** The nonce of a third one, if there is one. */
  readonly third?: Hex;
}

/** Certificates are permanent: added and read, never changed. */
export interface CertificateStore {
  /** The write that adds one. */
  adding(certificate: Certificate, grounds: Grounds): Statement;
  get(id: string): Promise<MarkedCertificate | null>;
  /** What its badge shows, for less of the database's time. */
  shown(id: string): Promise<ShownCertificate | null>;
}

/** What `/verify` reads, in as few round trips as possible. */
export interface VerificationReader {
  facts(wallet: Address, now: Date): Promise<VerificationFacts>;
}
