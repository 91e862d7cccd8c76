import { mismatch } from "../../../packages/escrow/src/check-payment.ts";
import { parsePayload } from "../../../packages/escrow/src/payment-header.ts";
import { requirements, SCHEME } from "../../../packages/escrow/src/terms.ts";
import type { RefusedFor } from "../refusal.ts";
import type { Payload, Scheme } from "../scheme.ts";
import {
  asDetails,
  current,
  digestOf,
  type EscrowContract,
  type EscrowedParts,
  escrowOffer,
  heldBy,
  isShort,
  lowerCased,
  paymentInfoOf,
} from "./escrowed.ts";

/**
 * Creates the `commerce` draft of x402: the escrow contract holds the USDC until its arbiter releases it to the seller
 * or refunds the buyer. The signature is EIP-3009's `ReceiveWithAuthorization` to the contract, and its nonce is the
 * hash of all terms.
 */
export const createCommerce = (parts: EscrowedParts): Scheme => heldBy(commerceRules(parts.contracts), parts);

const commerceRules = (contracts: readonly EscrowContract[]) =>
  ({
    id: SCHEME,
    versions: ["v2"] as const,
    requirements: ({ terms }, at) => requirements(escrowOffer(current(contracts, SCHEME), terms), at.getTime()),
    parse,
    digest: digestOf(contracts, SCHEME),
    misfit(payment, terms, at) {
      const { authorization, signature, claimed } = payment;
      const { scheme, network } = claimed;
      const info = paymentInfoOf(payment.details);
      const offer = escrowOffer(current(contracts, SCHEME), terms);
      const error = mismatch({ info, authorization, signature, scheme, network }, offer, at.getTime());
      return error === null ? null : { code: "invalid_payment_requirements", error };
    },
    worded: (refusedFor, error) => ({ code: CODES[refusedFor], error }),
    refused: (failure) => ({
      code: isShort(failure) ? CODES["short of funds"] : "invalid_transaction_state",
      error:
        failure.name === null ? failure.text : `The hold would fail on-chain: ${failure.text}. Nothing was charged.`,
    }),
  }) satisfies Parameters<typeof heldBy>[0];

/** The draft defines no codes, so these are x402's. */
const CODES = {
  early: "invalid_payload",
  expired: "invalid_payload",
  "valid for too long": "invalid_payload",
  unsigned: "invalid_payload",
  undeployed: "invalid_payload",
  "short of funds": "insufficient_funds",
  consumed: "invalid_transaction_state",
} as const satisfies Record<RefusedFor, string>;

function parse(payload: unknown): Payload | { readonly malformed: string } {
  const read = parsePayload(payload);
  if ("malformed" in read) return read;
  const { info, authorization, signature } = read;
  return { authorization: lowerCased(authorization), signature, details: asDetails(info) };
}
