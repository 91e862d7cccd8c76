import type { PaymentRequirements } from "@x402/core/types";
import type { Authorization, Expected, Head, View } from "../platform/chain/view.ts";
import type { Asker } from "../platform/http/request.ts";
import type { Offer, PaidRoute, Terms } from "../platform/http/route.ts";
import type { Network } from "../platform/networks.ts";
import type { Lease } from "../platform/relayer/sender.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { Refusal, RefusedFor } from "./refusal.ts";

/** The `resource` of a 402: x402's description of the paid route. */
export interface Resource {
  readonly url: string;
  readonly description: string;
  readonly mimeType: string;
}

export const resourceOf = (
  baseUrl: string,
  { path, description }: Pick<PaidRoute, "path" | "description">,
): Resource => ({
  url: `${baseUrl}${path}`,
  description,
  mimeType: "application/json",
});

export type Extensions = Readonly<Record<string, unknown>>;

export type ProtocolVersion = "v1" | "v2";

/** The terms that the client claims to have accepted; omitted fields are undefined. */
export interface ClaimedTerms {
  readonly scheme?: string | undefined;
  readonly network?: string | undefined;
  readonly asset?: string | undefined;
  readonly payTo?: string | undefined;
  readonly amount?: string | undefined;
  /** Unchanged from the header. */
  readonly extra?: unknown;
}

/** The fields of a payment header's `payload`, as a scheme parses them. */
export interface Payload {
  readonly authorization: Authorization;
  readonly signature: Hex;
  /**
   * The scheme's JSON for the journal: the data, in addition to the authorization, that submission needs. Null if there
   * is none.
   */
  readonly details: unknown;
}

/** A payment from its header, before any verification. */
export interface PresentedPayment extends Payload {
  readonly scheme: string;
  readonly version: ProtocolVersion;
  readonly paymentId: string | null;
  readonly claimed: ClaimedTerms;
  /** The unchanged `extensions` of a version 2 header. */
  readonly extensions?: Extensions | undefined;
}

/** A payment being submitted for settlement. */
export interface Submission extends Payload {
  readonly network: Network;
  /** The lease of the payment. A queued payment is not sent once another run has taken it over. */
  readonly lease: Lease;
  readonly resource: Resource;
  /**
   * The extensions from the client; undefined if there were none, or if the payment is submitted without its client.
   */
  readonly extensions?: Extensions | undefined;
}

/**
 * The rules of a payment scheme. They are pure, so that writing a 402 or parsing a header has no other dependencies.
 */
export interface SchemeRules {
  /** Its name in x402. */
  readonly id: string;
  /** The protocol versions that can pay with it. */
  readonly versions: readonly ProtocolVersion[];
  /** Its entry in the `accepts` of a 402. */
  readonly requirements: (offer: Offer, at: Date) => PaymentRequirements;
  /**
   * Parses a header's payload, given the terms that the client claims to have accepted. `malformed` names the field and
   * the expected value.
   */
  readonly parse: (payload: unknown, claimed: ClaimedTerms) => Payload | { readonly malformed: string };
  /** The EIP-712 digest the payer signs. */
  readonly digest: (payload: Pick<Payload, "authorization" | "details">, network: Network) => Hex;
  /**
   * Explains in one sentence for the 402 why a payment does not meet the terms; null if it does. The gate checks the
   * window.
   */
  readonly misfit: (payment: PresentedPayment, terms: Terms, at: Date) => Refusal | null;
  /**
   * Whether the scheme settles this ERC-6492 signature unchanged and so deploys its wallet; absent if it never does.
   */
  readonly deploys?: (signature: Hex) => boolean;
  /** `PAYMENT-RESPONSE` contains the amount. */
  readonly namesAmount?: true;
  /** Returns a refusal by the gate with the scheme's code. */
  readonly worded: (refusedFor: RefusedFor, why: string) => Refusal;
}

/**
 * A payment scheme of x402: everything that distinguishes one way to pay from another, and all that the gate, its state
 * machine, and its journal know about it. A scheme is a file in `schemes/`, a line in `index.ts`, and a name that
 * routes offer.
 */
export interface Scheme extends SchemeRules {
  /**
   * Simulates the settlement. `refused` is null if it would succeed; otherwise it explains why not. Reads the current
   * head and does not reveal the signature.
   */
  readonly simulate: (
    payment: Omit<Submission, "resource" | "extensions" | "lease">,
  ) => Promise<{ readonly refused: Refusal | null; readonly head: Head }>;
  /**
   * Whether the payer signed the digest in a form other than an account's signature or ERC-1271; absent if the scheme
   * has no other form. Rejects if the chain cannot be read, or if the client makes too many requests.
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
  /** The facilitator lists the route by the client's extensions, so they are stored until the payment is final. */
  readonly listsBy?: "extensions";
  /** Submits a signed payment for settlement. Its result and its errors decide nothing; only the chain does. */
  readonly submit: (payment: Submission) => Promise<void>;
  /** Returns the chain's view of a payment, found by payer and nonce. */
  readonly look: (network: Network, expected: Expected) => Promise<View>;
}
