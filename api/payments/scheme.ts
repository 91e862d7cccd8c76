import type { PaymentRequirements } from "@x402/core/types";
import type { Asker } from "../platform/http/request.ts";
import type { Offer, PaymentKey, Terms } from "../platform/http/route.ts";
import type { Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { Settlement, View } from "./step-types.ts";

export type ProtocolVersion = "v1" | "v2";

/** What a payer signs in every scheme so far, an EIP-3009 authorization: atomic units, times in unix seconds. */
export interface Authorization {
  readonly from: Address;
  /** Who receives the tokens: the seller, or the contract that holds them for the seller. */
  readonly to: Address;
  readonly value: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly nonce: Hex;
}

/** The terms the client says it accepted; fields it left out are undefined. */
export interface ClaimedTerms {
  readonly scheme?: string | undefined;
  readonly network?: string | undefined;
  readonly asset?: string | undefined;
  readonly payTo?: string | undefined;
  readonly amount?: string | undefined;
  /** As it is in the header. */
  readonly extra?: unknown;
}

/** What the gate itself refuses a payment for, before it is submitted. */
export type RefusedFor = "expired" | "unsigned" | "undeployed" | "short of funds";

/** What a scheme reads from the `payload` of a payment header. */
export interface Payload {
  readonly authorization: Authorization;
  readonly signature: Hex;
  /** JSON that the journal stores for the scheme: what submission needs besides the authorization. Null for nothing. */
  readonly details: unknown;
}

/** A payment as its header carries it; none of it has been verified yet. */
export interface PresentedPayment extends Payload {
  readonly scheme: string;
  readonly version: ProtocolVersion;
  readonly paymentId: string | null;
  readonly claimed: ClaimedTerms;
}

/** A run's hold on a payment: while its row has this token, nobody else works on it. */
export interface Lease {
  readonly key: PaymentKey;
  readonly token: string;
}

/** A payment being submitted for settlement. */
export interface Submission extends Payload {
  readonly network: Network;
  /** Whose payment it is: what waited until another run took it over is not sent. */
  readonly lease: Lease;
  /** The absolute URL being paid for. */
  readonly resource: string;
}

export interface Head {
  readonly number: number;
  /** Unix seconds. */
  readonly time: bigint;
}

/** What to look for on the chain. */
export interface Expected {
  readonly payer: Address;
  readonly nonce: Hex;
  readonly payTo: Address;
  readonly value: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly fromBlock: number;
  /** It was submitted a moment ago: what the newest blocks show of it is enough. */
  readonly justSubmitted?: boolean;
  /**
   * No row knows it and its window has closed: three readings in a row tell that it has not paid, also where no block that
   * is final shows that yet. Two of them have to be at blocks of this time or later; Unix seconds.
   */
  readonly unknownAt?: bigint;
}

/** The rules of a payment scheme. Pure, so that writing a 402 or reading a header needs nothing else. */
export interface SchemeRules {
  /** Its name in x402. */
  readonly id: string;
  /** The protocol versions that can pay with it. */
  readonly versions: readonly ProtocolVersion[];
  /** Its entry in the `accepts` of a 402. */
  readonly requirements: (offer: Offer, at: Date) => PaymentRequirements;
  /**
   * Reads a header's payload, beside what the client says it accepted; `malformed` names the field and what is expected
   * of it.
   */
  readonly parse: (payload: unknown, claimed: ClaimedTerms) => Payload | { readonly malformed: string };
  /** The EIP-712 digest the payer signs. */
  readonly digest: (payload: Pick<Payload, "authorization" | "details">, network: Network) => Hex;
  /**
   * Why a payment does not meet the terms, as one sentence for its 402; null if it does. The gate checks its window.
   */
  readonly mismatch: (payment: PresentedPayment, terms: Terms, at: Date) => string | null;
  /** Whether it settles this ERC-6492 signature as it is, and so deploys its wallet; absent if it never does. */
  readonly deploys?: (signature: Hex) => boolean;
  /** `PAYMENT-RESPONSE` names the amount. */
  readonly namesAmount?: true;
  /** The gate's own refusals in the scheme's words, if it has any. */
  readonly worded?: (refusedFor: RefusedFor, why: string) => string;
}

/**
 * A payment scheme of x402: everything that distinguishes one way to pay from another, and all that the gate, its state
 * machine and its journal know about it. A scheme is a folder here, a line in the wiring, and a name that routes offer.
 */
export interface Scheme extends SchemeRules {
  /**
   * Simulates the settlement: `refused` is null if it would succeed, else why not. Reads the head afresh and gives
   * nothing away.
   */
  readonly simulate: (
    payment: Omit<Submission, "resource" | "lease">,
  ) => Promise<{ readonly refused: string | null; readonly head: Head }>;
  /**
   * Whether the payer signed the digest in a form that is neither an account's nor ERC-1271; absent if there is none.
   * Rejects if the chain cannot be read, and some of those who ask for very many.
   */
  readonly isSignedOtherwise?: (
    signed: {
      readonly network: Network;
      readonly payer: Address;
      readonly digest: Hex;
      readonly signature: Hex;
    },
    asker: Asker,
  ) => Promise<boolean>;
  /** Submits a signed payment for settlement. Nothing it reports or throws decides anything: only the chain does. */
  readonly submit: (payment: Submission) => Promise<void>;
  /** What the chain shows for a payment, found by payer and nonce. */
  readonly look: (network: Network, expected: Expected) => Promise<View>;
}

/**
 * Whether a settlement's block is canonical but not final, canonical and final, or neither, as far as this node knows.
 */
export type Standing = "pending" | "final" | "unknown";

/** What a payer has at one block, in atomic units of USDC, and which of its nonces are unused there. */
export interface Funds {
  readonly balance: bigint;
  readonly unused: readonly Hex[];
}

/** What a payer is said to have signed. */
export interface PayerSignature {
  readonly payer: Address;
  readonly digest: Hex;
  readonly signature: Hex;
}

/** A payment, and the transaction of ours that was mined without settling it. */
export interface FailedPayment
  extends Pick<Expected, "payer" | "nonce" | "payTo" | "value" | "validAfter" | "validBefore"> {
  readonly transaction: Hex;
}

export interface Failed {
  /** Whether the nonce was still unused once the transaction had been mined. */
  readonly isUnused: boolean;
  /** Whether the chain shows that the payer made it fail. */
  readonly isPayersDoing: boolean;
}

/** Our own view of one chain. Every method rejects if the chain cannot be read. */
export interface Chain {
  head(): Promise<Head>;
  /**
   * Verifies a signature by ERC-1271, without its ERC-6492 wrapping; false for an account without code. Of those who ask
   * for very many, some are refused.
   * @param reading.afresh calls the account no matter what is remembered of its code
   */
  verifyContractSignature(
    signed: PayerSignature,
    asker: Asker,
    reading?: { readonly afresh?: boolean },
  ): Promise<boolean>;
  /** Whether an account has code. The same askers are refused. */
  isDeployed(account: Address, asker: Asker): Promise<boolean>;
  /** The USDC transfer that used an authorization, found by payer and nonce. */
  look(expected: Expected): Promise<View>;
  funds(payer: Address, nonces: readonly Hex[]): Promise<Funds>;
  /** What is left of a payment whose transaction was mined without settling it. */
  afterFailure(payment: FailedPayment): Promise<Failed>;
  /** What has become of a settlement's block. */
  standing(settlement: Pick<Settlement, "block" | "blockHash">): Promise<Standing>;
}
