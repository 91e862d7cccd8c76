import { z } from "zod";
import { PAYMENT_INFO_TYPEHASH, type PaymentInfo } from "../../../packages/escrow/src/payment-info.ts";
import type { EscrowFacts, Offer } from "../../../packages/escrow/src/terms.ts";
import { authorizationDigest } from "../../platform/chain/authorization.ts";
import { addressWord, bytes32Word, keccak256, uintWord } from "../../platform/chain/typed-data.ts";
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
  /** What is called to hold, release and refund; deliveries are signed for it. */
  readonly address: Address;
  /** What holds the money: ids and nonces bind it. The contract itself, or base/commerce-payments' escrow. */
  readonly custody: Address;
  /** What the payer signs the money over to. */
  readonly collector: Address;
  /** The account that the money is in until it is released: the contract itself, or the one that the custody has for it. */
  readonly store: Address;
  readonly usdc: Address;
  readonly arbiter: Address;
  readonly feeRecipient: Address;
}

/** What sells now by a scheme: the first listed of its kind. Undefined if there is none. */
export const currentOf = (contracts: readonly EscrowContract[], scheme: EscrowSchemeId): EscrowContract | undefined =>
  contracts.find((contract) => contract.scheme === scheme);

/** The schemes that can be offered, preferred first: what stock clients can pay. */
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

/** The terms of a hold as the journal stores them: integers too large for JSON are decimal strings. */
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

/** The terms of a hold, addresses in lower case. Throws on anything `asDetails` did not write. */
export const paymentInfoOf = (details: unknown): PaymentInfo => DETAILS.parse(details);

const TYPE_HASH = bytes32Word(PAYMENT_INFO_TYPEHASH);
const NOBODY: Address = `0x${"00".repeat(20)}`;

/** The terms of a hold as contracts take them, in their ABI's words. Throws if one does not fit. */
const termsWords = (info: PaymentInfo): string =>
  [
    addressWord(info.operator),
    addressWord(info.payer),
    addressWord(info.receiver),
    addressWord(info.token),
    uintWord(info.maxAmount, 120),
    uintWord(info.preApprovalExpiry, 48),
    uintWord(info.authorizationExpiry, 48),
    uintWord(info.refundExpiry, 48),
    uintWord(info.minFeeBps, 16),
    uintWord(info.maxFeeBps, 16),
    addressWord(info.feeReceiver),
    uintWord(info.salt),
  ].join("");

/** The id of a payment: base/commerce-payments' hash of the terms, the chain and what holds the money. */
export function paymentId(info: PaymentInfo, chainId: number, custody: Address): Hex {
  const terms = keccak256(`0x${TYPE_HASH}${termsWords(info)}`);
  return keccak256(`0x${uintWord(chainId)}${addressWord(custody)}${terms.slice(2)}`);
}

/** The nonce of the payer's authorization: the id computed with a zero payer. */
export const payerAgnosticHash = (info: PaymentInfo, chainId: number, custody: Address): Hex =>
  paymentId({ ...info, payer: NOBODY }, chainId, custody);

/** A hold signed by a buyer. */
export interface SignedHold {
  /** What it is called on. */
  readonly contract: Address;
  readonly collector: Address;
  readonly info: PaymentInfo;
  /** Of the authorization. */
  readonly nonce: Hex;
  readonly signature: Hex;
}

/** Why a hold would fail, in words. */
export interface HoldFailure {
  /** Of the contract's error; null if it would need more gas than a hold may use. */
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
   * Sends a hold, with others or alone, and waits until it is mined. Rejects if it is not mined, which decides nothing.
   * What is queued is sent only while the lease is held.
   */
  make(hold: SignedHold, lease: Lease): Promise<void>;
  /**
   * The transaction of ours in which the payer's authorization was mined without being used; null if none is known.
   * After one, `make` sends nothing.
   */
  failed(payer: Address, nonce: Hex): Promise<Hex | null>;
}

export interface EscrowedParts {
  /** The contracts this service arbitrates, of every scheme, current ones first; empty if there are none. */
  readonly contracts: readonly EscrowContract[];
  readonly chains: Readonly<Record<Network, Chain>>;
  readonly holds: Holds;
}

/** What sells by this scheme. Routes offer only what can be paid, so that there is none is our own bug. */
export function current(contracts: readonly EscrowContract[], scheme: EscrowSchemeId): EscrowContract {
  const contract = currentOf(contracts, scheme);
  if (contract === undefined) throw new Error(`no contract is configured that "${scheme}" pays`);
  return contract;
}

/** The EIP-712 digest of the authorization that a hold's terms call for. It binds every one of them. */
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
      nonce: payerAgnosticHash(info, facts.chainId, custody),
    };
    return authorizationDigest(authorization, facts, "ReceiveWithAuthorization");
  };

/** A scheme whose payments a contract holds: they differ in what travels, and not in what happens on the chain. */
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

/** The contract that a payment names as its operator; the terms refuse any but ours. */
const contractOf = (contracts: readonly EscrowContract[], scheme: EscrowSchemeId, { operator }: PaymentInfo) =>
  contracts.find(({ address }) => address === operator) ?? current(contracts, scheme);

/** What is sold under these terms; the contract's custody holds the payment until its arbiter decides. */
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

/** With addresses in lower case, as everything inside has them. */
export const lowerCased = (authorization: Authorization): Authorization => ({
  ...authorization,
  from: authorization.from.toLowerCase() as Address,
  to: authorization.to.toLowerCase() as Address,
});
