import type { PaymentRequirements } from "@x402/core/types";
import type { Network } from "../kernel/networks.ts";
import type { Offer, Terms } from "../kernel/route.ts";
import type { Address, Hex } from "../kernel/wallet.ts";
import type { View } from "./step-types.ts";

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

/** The terms that a client says it accepted; fields that it left out are undefined. */
export interface ClaimedTerms {
  readonly scheme?: string | undefined;
  readonly network?: string | undefined;
  readonly asset?: string | undefined;
  readonly payTo?: string | undefined;
  readonly amount?: string | undefined;
}

/** What a scheme reads in the `payload` of a payment header. */
export interface Payload {
  readonly authorization: Authorization;
  readonly signature: Hex;
  /** JSON that the journal keeps for the scheme: what submitting the payment takes beside the authorization. Null for nothing. */
  readonly details: unknown;
}

/** A payment as its header carries it; nothing in it has been verified yet. */
export interface PresentedPayment extends Payload {
  readonly scheme: string;
  readonly version: ProtocolVersion;
  readonly paymentId: string | null;
  readonly claimed: ClaimedTerms;
}

/** A payment that is handed over for settlement. */
export interface Submission extends Payload {
  readonly network: Network;
  /** The absolute URL that is paid for. */
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
  readonly validBefore: bigint;
  readonly fromBlock: number;
}

/** The rules of a payment scheme: pure, so that whoever writes a 402 or reads a header needs nothing else. */
export interface SchemeRules {
  /** As x402 names it. */
  readonly id: string;
  /** The protocol versions in which it can be paid. */
  readonly versions: readonly ProtocolVersion[];
  /** Its entry in the `accepts` of a 402. */
  readonly requirements: (offer: Offer, at: Date) => PaymentRequirements;
  /** Reads a header's payload; `malformed` names the field and what is expected of it. */
  readonly parse: (payload: unknown) => Payload | { readonly malformed: string };
  /** The EIP-712 digest that the payer signs. */
  readonly digest: (payload: Pick<Payload, "authorization" | "details">, network: Network) => Hex;
  /** Why a payment is not what the terms ask for, as one sentence for its 402; null when it is. Its window is the gate's concern. */
  readonly mismatch: (payment: PresentedPayment, terms: Terms, at: Date) => string | null;
}

/**
 * A payment scheme of x402: everything in which one way to pay differs from another. The gate, its state machine and its journal
 * know nothing else of it. A scheme is a folder here, a line in the wiring, and a name that routes offer.
 */
export interface Scheme extends SchemeRules {
  /** Simulates the settlement: `refused` is null when it would succeed, else why not. The head is read anew. Hands nothing out. */
  readonly simulate: (
    payment: Omit<Submission, "resource">,
  ) => Promise<{ readonly refused: string | null; readonly head: Head }>;
  /** Hands a signed payment over for settlement. What it reports or throws decides nothing: only the chain does. */
  readonly submit: (payment: Submission) => Promise<void>;
  /** What the chain shows of a payment, found by payer and nonce. */
  readonly look: (network: Network, expected: Expected) => Promise<View>;
}
