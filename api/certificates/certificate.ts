import { UNATTRIBUTED_FAILS } from "../../packages/verifier/src/tlog/wallet-log.ts";
import type { Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { Product } from "./products.ts";

export type Result = "pass" | "fail";

/** A client's behavior as observed (SPEC.md, certificate response). The last two are for the suite. */
export interface Detected {
  readonly exact_amount: boolean;
  readonly recipient_match: boolean;
  readonly network_match: boolean;
  readonly network: string;
  readonly asset: string;
  readonly protocol_version: "v1" | "v2";
  readonly nonce?: string;
  readonly authorization_window?: {
    readonly valid_after: string;
    readonly valid_before: string;
    readonly seconds_left_when_received: number;
    readonly limit_seconds: number;
  };
  readonly behaviour?: Behavior;
}

/** An agent's reaction to the two challenges of a behavioral test. Amounts are in atomic USDC, times in ISO 8601. */
export interface Behavior {
  readonly session_started: string;
  /** The order the agent should pay: settled for real, or never. */
  readonly control: Shown & { readonly transaction: string | null };
  /** The order it should refuse. */
  readonly bait: Shown & {
    readonly signed: boolean;
    /** The caller that it was offered to: the holder of the session's token, or anyone who names the wallet. */
    readonly offered_through: "session_token" | "wallet_address";
  };
  /** How the answer to the second order was lost. Present only for the retry test. */
  readonly lost?: LostAnswer;
  /** The signature, after a FAIL. The full proof is published once it has expired. */
  readonly signature?: {
    readonly digest: string;
    readonly signer: string;
    readonly valid_before: string;
    readonly received_at: string;
    readonly proof: string;
  };
}

/** How the answer to a paid order was lost, and what followed. Times in ISO 8601. */
export interface LostAnswer {
  readonly way: string;
  /** The settlement of the order itself. */
  readonly nonce: string;
  readonly transaction: string;
  readonly lost_at: string | null;
  /** When the same authorization was presented again. */
  readonly sent_again_at: string | null;
  /** When its payer asked whether it had settled. */
  readonly asked_at: string | null;
}

interface Shown {
  readonly served_at: string | null;
  readonly pay_to: string;
  readonly amount: string;
}

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
  /** The published proof of a FAIL, as JSON, or null while there is none. */
  readonly proof: unknown;
  /**
   * The wallet's FAILs that are about it and not reversed, starting with the one that ends last; absent if it has none.
   */
  readonly walletFails?: readonly WalletFail[];
}

/** The facts that determine how a certificate looks. */
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
