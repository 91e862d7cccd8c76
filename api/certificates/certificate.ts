import type { z } from "zod";
import { UNATTRIBUTED_FAILS } from "../../packages/verifier/src/tlog/wallet-log.ts";
import type { Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { Product } from "./products.ts";
import type { DETECTED } from "./schemas.ts";

export type Result = "pass" | "fail";

export type Detected = z.infer<typeof DETECTED>;

export type Behavior = NonNullable<Detected["behaviour"]>;

/** How the answer to a paid order was lost, and what followed. Present only for the retry test. */
export type LostAnswer = NonNullable<Behavior["lost"]>;

/** A permanent, true record of one test run. Times are in UTC; `issuedAt` and `validUntil` are 30 days apart. */
export interface Certificate {
  readonly id: string;
  readonly product: Product;
  readonly testVersion: number;
  readonly result: Result;
  readonly level: string;
  readonly wallet: Address;
  readonly checks: Readonly<Record<string, Result>>;
  readonly detected: Detected;
  readonly issuedAt: Date;
  readonly validUntil: Date;
  readonly settlement: SettledPayment;
}

export interface SettledPayment {
  readonly network: Network;
  readonly transaction: Hex;
  readonly block: number;
  readonly amountAtomic: bigint;
  readonly payTo: Address;
}

/** A certificate with marks from later facts. The record itself never changes. */
export interface MarkedCertificate extends Certificate {
  /**
   * When a settlement that it depends on was found to be permanently gone from the chain; null if that never happened.
   */
  readonly reversedAt: Date | null;
  readonly proof: unknown;
  /**
   * The wallet's FAILs that are about it and not reversed, starting with the one that ends last; absent if it has none.
   */
  readonly walletFails?: readonly WalletFail[];
}

export type ShownCertificate = Pick<
  MarkedCertificate,
  "id" | "product" | "result" | "level" | "issuedAt" | "validUntil" | "reversedAt" | "walletFails"
>;

export type WalletFail = Pick<Certificate, "id" | "product" | "issuedAt" | "validUntil">;

export const VALID_FOR_DAYS = 30;
const DAY_MS = 86_400_000;

export const validUntil = (issuedAt: Date): Date => new Date(issuedAt.getTime() + VALID_FOR_DAYS * DAY_MS);

/** Returns whether the certificate is fresh, which ends at the instant 30 days after issuance. */
export const isFresh = (certificate: Pick<Certificate, "validUntil">, now: Date): boolean =>
  now.getTime() < certificate.validUntil.getTime();

/**
 * Returns the FAILs because of which the wallet is not verified now, regardless of this certificate. Each counts until
 * it expires.
 */
export const currentFails = ({ walletFails = [] }: Pick<MarkedCertificate, "walletFails">, now: Date) =>
  walletFails.filter((fail) => isFresh(fail, now));

export const ageDays = (certificate: Pick<Certificate, "issuedAt">, now: Date): number =>
  Math.max(0, Math.floor((now.getTime() - certificate.issuedAt.getTime()) / DAY_MS));

/** A certificate as listed in a verification record. */
export type CertificateSummary = Pick<
  MarkedCertificate,
  "id" | "product" | "testVersion" | "result" | "level" | "issuedAt" | "validUntil" | "reversedAt"
>;

/**
 * Returns false for a FAIL that may be the fault of the site that requested the payment. It does not count for or
 * against the wallet.
 */
export const isAboutWallet = ({ product, result }: Pick<CertificateSummary, "product" | "result">): boolean =>
  result === "pass" || !UNATTRIBUTED_FAILS.includes(product);

/** Returns whether the certificate is fresh, not reversed, and about the wallet. */
export const isCurrent = (certificate: CertificateSummary, now: Date): boolean =>
  certificate.reversedAt === null && isFresh(certificate, now) && isAboutWallet(certificate);
