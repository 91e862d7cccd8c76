import { hashTypedData } from "viem";
import { authorizationOf } from "../../../packages/escrow/src/authorization.ts";
import { mismatch } from "../../../packages/escrow/src/check-payment.ts";
import { parsePayload } from "../../../packages/escrow/src/payment-header.ts";
import type { PaymentInfo } from "../../../packages/escrow/src/payment-info.ts";
import { escrowAt, SCHEME } from "../../../packages/escrow/src/terms.ts";
import { NETWORKS, type Network } from "../../kernel/networks.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import type { Chain } from "../chain.ts";
import { lookFor } from "../look.ts";
import type { Authorization, Payload, Scheme, SchemeRules } from "../scheme.ts";
import { asDetails, paymentInfoOf } from "./details.ts";
import type { EscrowContract } from "./escrow-contract.ts";
import { commerceOffer, requirements } from "./terms.ts";

/** A hold signed by a buyer. */
export interface SignedHold {
  readonly contract: Address;
  readonly info: PaymentInfo;
  /** Of the authorization. */
  readonly nonce: Hex;
  readonly signature: Hex;
}

/** Places holds on the chain. */
export interface Holds {
  /** Simulates a hold: null if it would succeed, else why not. Rejects if the chain cannot be read. */
  refusal(hold: SignedHold): Promise<string | null>;
  /** Sends a hold and waits until it is mined. Rejects if it is not mined, which decides nothing. */
  make(hold: SignedHold): Promise<void>;
  /**
   * The transaction of ours in which the payer's authorization was mined without being used; null if none is known.
   * After one, `make` sends nothing.
   */
  failed(payer: Address, nonce: Hex): Promise<Hex | null>;
}

export interface CommerceParts {
  /** The contracts this service arbitrates, current one first; empty if there are none. */
  readonly contracts: readonly EscrowContract[];
  readonly chains: Readonly<Record<Network, Chain>>;
  readonly holds: Holds;
}

/**
 * The `commerce` draft of x402: the escrow contract holds the USDC until its arbiter releases it to the seller or
 * refunds the buyer. The signature is EIP-3009's `ReceiveWithAuthorization` to the contract, and its nonce is the hash
 * of all terms.
 */
const commerceRules = (contracts: CommerceParts["contracts"]): SchemeRules => ({
  id: SCHEME,
  versions: ["v2"],
  requirements: ({ terms }, at) => requirements(current(contracts), terms, at),
  parse,
  digest: ({ details }, network) => hashTypedData(typedData(contracts, paymentInfoOf(details), network)),
  mismatch(payment, terms, at) {
    const { authorization, signature, claimed } = payment;
    const { scheme, network } = claimed;
    const info = paymentInfoOf(payment.details);
    return mismatch(
      { info, authorization, signature, scheme, network },
      commerceOffer(current(contracts), terms),
      at.getTime(),
    );
  },
});

export const createCommerce = ({ contracts, chains, holds }: CommerceParts): Scheme => ({
  ...commerceRules(contracts),
  async simulate({ network, ...signed }) {
    const [refused, head] = await Promise.all([holds.refusal(holdOf(signed)), chains[network].head()]);
    return { refused, head };
  },
  submit: (signed) => holds.make(holdOf(signed)),
  look: (network, expected) => lookFor(chains[network], expected, () => holds.failed(expected.payer, expected.nonce)),
});

function current([contract]: readonly EscrowContract[]): EscrowContract {
  if (contract === undefined) throw new Error("no escrow contract is configured");
  return contract;
}

function parse(payload: unknown): Payload | { readonly malformed: string } {
  const read = parsePayload(payload);
  if ("malformed" in read) return read;
  const { info, authorization, signature } = read;
  return { authorization: lower(authorization), signature, details: asDetails(info) };
}

const lower = (authorization: Authorization): Authorization => ({
  ...authorization,
  from: authorization.from.toLowerCase() as Address,
  to: authorization.to.toLowerCase() as Address,
});

/** A payment's operator is the contract that holds it; the terms refuse any contract but ours. */
const holdOf = ({ authorization: { nonce }, details, signature }: Payload): SignedHold => {
  const info = paymentInfoOf(details);
  return { contract: info.operator, info, nonce, signature };
};

function typedData(contracts: readonly EscrowContract[], info: PaymentInfo, network: Network) {
  const known = contracts.find(({ address }) => address === info.operator) ?? current(contracts);
  const { chainId, usdc } = NETWORKS[network];
  return authorizationOf({ chainId, usdc, ...escrowAt(known.address) }, info);
}
