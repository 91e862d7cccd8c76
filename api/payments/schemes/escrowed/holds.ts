import type { PaymentInfo } from "../../../../packages/escrow/src/payment-info.ts";
import { NETWORKS, type Network } from "../../../platform/networks.ts";
import type { Address, Hex } from "../../../platform/wallet.ts";
import type { Chain } from "../../chain.ts";
import { authorizationDigest } from "../exact/authorization.ts";
import { lookFor } from "../../look.ts";
import type { Lease, Payload, Scheme, SchemeRules } from "../../scheme.ts";
import { currentOf, type EscrowContract, type EscrowSchemeId } from "./contract.ts";
import { paymentInfoOf } from "./details.ts";
import { payerAgnosticHash } from "./terms-hash.ts";

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
  rules: SchemeRules & { readonly id: EscrowSchemeId; readonly refused: (failure: HoldFailure) => string },
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
