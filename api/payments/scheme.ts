import type { PaymentRequirements } from "@x402/core/types";
import type { Authorization, Expected, Head, View } from "../platform/chain/view.ts";
import type { Asker } from "../platform/http/request.ts";
import type { Offer, PaidRoute, Terms } from "../platform/http/route.ts";
import type { Network } from "../platform/networks.ts";
import type { Lease } from "../platform/relayer/sender.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { Refusal, RefusedFor } from "./refusal.ts";

/** What x402 says of a route that is paid for: the `resource` of its 402. */
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
  /** The `extensions` of a header of version 2, as they are. */
  readonly extensions?: Extensions | undefined;
}

/** A payment being submitted for settlement. */
export interface Submission extends Payload {
  readonly network: Network;
  /** Whose payment it is: what waited until another run took it over is not sent. */
  readonly lease: Lease;
  readonly resource: Resource;
  /** What the client sent with the payment; undefined for nothing, and if the payment is submitted without its client. */
  readonly extensions?: Extensions | undefined;
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
   * Why a payment does not meet the terms, in one sentence for its 402; null if it does. The gate checks its window.
   */
  readonly misfit: (payment: PresentedPayment, terms: Terms, at: Date) => Refusal | null;
  /** Whether it settles this ERC-6492 signature as it is, and so deploys its wallet; absent if it never does. */
  readonly deploys?: (signature: Hex) => boolean;
  /** `PAYMENT-RESPONSE` names the amount. */
  readonly namesAmount?: true;
  /** The gate's own refusals with the scheme's codes. */
  readonly worded: (refusedFor: RefusedFor, why: string) => Refusal;
}

/**
 * A payment scheme of x402: everything that distinguishes one way to pay from another, and all that the gate, its state
 * machine and its journal know about it. A scheme is a file in `schemes/`, a line in
 * `index.ts`, and a name that routes offer.
 */
export interface Scheme extends SchemeRules {
  /**
   * Simulates the settlement: `refused` is null if it would succeed, else why not. Reads the head afresh and gives
   * nothing away.
   */
  readonly simulate: (
    payment: Omit<Submission, "resource" | "extensions" | "lease">,
  ) => Promise<{ readonly refused: Refusal | null; readonly head: Head }>;
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
  /** Who settles lists the route by what clients send along: it has to be kept until the payment is final. */
  readonly listsBy?: "extensions";
  /** Submits a signed payment for settlement. Nothing it reports or throws decides anything: only the chain does. */
  readonly submit: (payment: Submission) => Promise<void>;
  /** What the chain shows for a payment, found by payer and nonce. */
  readonly look: (network: Network, expected: Expected) => Promise<View>;
}
