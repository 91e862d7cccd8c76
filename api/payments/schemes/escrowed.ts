import { z } from "zod";
import { type PaymentInfo, payerAgnosticNonce } from "../../../packages/escrow/src/payment-info.ts";
import type { EscrowFacts, Offer } from "../../../packages/escrow/src/terms.ts";
import { authorizationDigest } from "../../platform/chain/authorization.ts";
import type { Authorization, Chain } from "../../platform/chain/view.ts";
import type { Terms } from "../../platform/http/route.ts";
import { NETWORKS, type Network } from "../../platform/networks.ts";
import type { Lease } from "../../platform/relayer/sender.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import { lookFor } from "../commands.ts";
import type { Refusal } from "../refusal.ts";
import type { Payload, Scheme, SchemeRules } from "../scheme.ts";

/** The x402 scheme that pays a contract. */
export type EscrowSchemeId = EscrowFacts["scheme"];

/** An escrow contract or operator that this service arbitrates, or used to. Addresses are in lower case. */
export interface EscrowContract {
  readonly scheme: EscrowSchemeId;
  readonly network: Network;
  /** The contract that is called to hold, release, and refund. It is also part of a signed delivery. */
  readonly address: Address;
  /** The contract that holds the money, part of each id and nonce: this contract, or base/commerce-payments' escrow. */
  readonly custody: Address;
  /** The recipient of the payer's authorization. */
  readonly collector: Address;
  /** The account that has the money until its release: this contract, or the custody's token store for it. */
  readonly store: Address;
  readonly usdc: Address;
  readonly arbiter: Address;
  readonly feeRecipient: Address;
}

/** Returns the contract that currently sells by a scheme, the first one listed; undefined if there is none. */
export const currentOf = (contracts: readonly EscrowContract[], scheme: EscrowSchemeId): EscrowContract | undefined =>
  contracts.find((contract) => contract.scheme === scheme);

/** Returns the schemes that can be offered, the one that stock clients can pay first. */
export const schemesIn = (contracts: readonly EscrowContract[]): readonly EscrowSchemeId[] =>
  (["auth-capture", "commerce"] as const).filter((scheme) => currentOf(contracts, scheme) !== undefined);

const lower = (address: string): Address => address.toLowerCase() as Address;
const address = z.string().transform(lower);

const DETAILS = z.object({
  operator: address,
  payer: address,
  receiver: address,
  token: address,
  maxAmount: z.coerce.bigint(),
  preApprovalExpiry: z.number(),
  authorizationExpiry: z.number(),
  refundExpiry: z.number(),
  minFeeBps: z.number(),
  maxFeeBps: z.number(),
  feeReceiver: address,
  salt: z.coerce.bigint(),
});

/** Returns the terms of a hold as the journal stores them. Integers too large for JSON are decimal strings. */
export const asDetails = (info: PaymentInfo) => ({
  ...info,
  operator: lower(info.operator),
  payer: lower(info.payer),
  receiver: lower(info.receiver),
  token: lower(info.token),
  feeReceiver: lower(info.feeReceiver),
  maxAmount: info.maxAmount.toString(),
  salt: info.salt.toString(),
});

/** Parses the terms of a hold. Throws on anything that `asDetails` did not write. */
export const paymentInfoOf = (details: unknown): PaymentInfo => DETAILS.parse(details);

/** A hold signed by a buyer. */
export interface SignedHold {
  /** The contract that is called. */
  readonly contract: Address;
  readonly collector: Address;
  readonly info: PaymentInfo;
  /** The authorization's nonce. */
  readonly nonce: Hex;
  readonly signature: Hex;
}

/** Why a hold would fail. */
export interface HoldFailure {
  /** The name of the contract's error; null if the hold would need too much gas. */
  readonly name: string | null;
  readonly text: string;
}

/** Whether the payer has too little USDC. */
export const isShort = ({ text }: HoldFailure): boolean => /transfer amount exceeds balance/.test(text);

/** Places holds on the chain. */
export interface Holds {
  /** Simulates a hold: null if it would succeed, else why not. Rejects if the chain cannot be read. */
  failure(hold: SignedHold): Promise<HoldFailure | null>;
  /**
   * Sends a hold, in a batch or alone, and waits until it is mined. Rejects if it is not mined, which decides nothing.
   * A queued hold is sent only while the lease is held.
   */
  make(hold: SignedHold, lease: Lease): Promise<void>;
  /**
   * Returns our transaction in which the payer's authorization was mined without being used; null if none is known.
   * After such a failure, `make` sends nothing.
   */
  failed(payer: Address, nonce: Hex): Promise<Hex | null>;
}

export interface EscrowedParts {
  /** All contracts that this service arbitrates, current ones first; may be empty. */
  readonly contracts: readonly EscrowContract[];
  readonly chains: Readonly<Record<Network, Chain>>;
  readonly holds: Holds;
}

/**
 * Returns the contract that currently sells by this scheme. Routes offer only payable schemes, so its absence is our
 * own bug.
 */
export function current(contracts: readonly EscrowContract[], scheme: EscrowSchemeId): EscrowContract {
  const contract = currentOf(contracts, scheme);
  if (contract === undefined) throw new Error(`no contract is configured that "${scheme}" pays`);
  return contract;
}

/** Returns the EIP-712 digest of the authorization for a hold's terms. It binds every one of them. */
export const digestOf =
  (contracts: readonly EscrowContract[], scheme: EscrowSchemeId): SchemeRules["digest"] =>
  ({ details }, network) => {
    const info = paymentInfoOf(details);
    const { custody, collector } = contractOf(contracts, scheme, info);
    const facts = NETWORKS[network];
    const authorization = {
      from: info.payer,
      to: collector,
      value: info.maxAmount,
      validAfter: 0n,
      validBefore: BigInt(info.preApprovalExpiry),
      nonce: payerAgnosticNonce({ chainId: facts.chainId, escrow: custody }, info),
    };
    return authorizationDigest(authorization, facts, "ReceiveWithAuthorization");
  };

/** Creates a scheme whose payments a contract holds. Such schemes differ in their headers, not on the chain. */
export const heldBy = (
  rules: SchemeRules & { readonly id: EscrowSchemeId; readonly refused: (failure: HoldFailure) => Refusal },
  { contracts, chains, holds }: EscrowedParts,
): Scheme => {
  const holdOf = ({ authorization: { nonce }, details, signature }: Payload): SignedHold => {
    const info = paymentInfoOf(details);
    return {
      contract: info.operator,
      collector: contractOf(contracts, rules.id, info).collector,
      info,
      nonce,
      signature,
    };
  };
  return {
    ...rules,
    async simulate({ network, ...signed }) {
      const [failure, head] = await Promise.all([holds.failure(holdOf(signed)), chains[network].head()]);
      return { refused: failure === null ? null : rules.refused(failure), head };
    },
    submit: (signed) => holds.make(holdOf(signed), signed.lease),
    look: (network, expected) => lookFor(chains[network], expected, () => holds.failed(expected.payer, expected.nonce)),
  };
};

/** Returns the contract that a payment names as its operator; the terms refuse any other than ours. */
const contractOf = (contracts: readonly EscrowContract[], scheme: EscrowSchemeId, { operator }: PaymentInfo) =>
  contracts.find(({ address }) => address === operator) ?? current(contracts, scheme);

/** Returns the offer for these terms. The contract's custody holds the payment until its arbiter decides. */
export const escrowOffer = (
  { scheme, network, address, custody, collector, feeRecipient }: EscrowContract,
  terms: Terms,
): Offer => ({
  escrow: {
    scheme,
    chainId: NETWORKS[network].chainId,
    address,
    custody,
    collector,
    usdc: NETWORKS[network].usdc,
    feeReceiver: feeRecipient,
    deliveryDomain: { name: "Agent Payment Trust Delivery", version: "1" },
  },
  merchant: terms.payTo,
  price: terms.value,
});

/** Returns the authorization with addresses in lower case, as all internal code expects. */
export const lowerCased = (authorization: Authorization): Authorization => ({
  ...authorization,
  from: authorization.from.toLowerCase() as Address,
  to: authorization.to.toLowerCase() as Address,
});
