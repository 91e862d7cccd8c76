import { mismatch } from "../../../packages/escrow/src/check-payment.ts";
import { parsePayload } from "../../../packages/escrow/src/payment-header.ts";
import { requirements, SCHEME } from "../../../packages/escrow/src/terms.ts";
import type { Payload, Scheme } from "../scheme.ts";
import {
  asDetails,
  current,
  digestOf,
  type EscrowContract,
  type EscrowedParts,
  escrowOffer,
  heldBy,
  lowerCased,
  paymentInfoOf,
} from "./escrowed.ts";

/**
 * The `commerce` draft of x402: the escrow contract holds the USDC until its arbiter releases it to the seller or
 * refunds the buyer. The signature is EIP-3009's `ReceiveWithAuthorization` to the contract, and its nonce is the hash
 * of all terms.
 */
export const createCommerce = (parts: EscrowedParts): Scheme => heldBy(commerceRules(parts.contracts), parts);

const commerceRules = (contracts: readonly EscrowContract[]) =>
  ({
    id: SCHEME,
    versions: ["v2"] as const,
    requirements: ({ terms }, at) => requirements(escrowOffer(current(contracts, SCHEME), terms), at.getTime()),
    parse,
    digest: digestOf(contracts, SCHEME),
    mismatch(payment, terms, at) {
      const { authorization, signature, claimed } = payment;
      const { scheme, network } = claimed;
      const info = paymentInfoOf(payment.details);
      const offer = escrowOffer(current(contracts, SCHEME), terms);
      return mismatch({ info, authorization, signature, scheme, network }, offer, at.getTime());
    },
    refused: (failure) =>
      failure.name === null ? failure.text : `The hold would fail on-chain: ${failure.text}. Nothing was charged.`,
  }) satisfies Parameters<typeof heldBy>[0];

function parse(payload: unknown): Payload | { readonly malformed: string } {
  const read = parsePayload(payload);
  if ("malformed" in read) return read;
  const { info, authorization, signature } = read;
  return { authorization: lowerCased(authorization), signature, details: asDetails(info) };
}
