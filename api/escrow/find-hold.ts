import { paymentId } from "../../packages/escrow/src/payment-info.ts";
import { type EscrowContract, isAccountSignature } from "../payments/index.ts";
import { NETWORKS } from "../platform/networks.ts";
import type { Hex } from "../platform/wallet.ts";
import type { EscrowChain } from "./chain.ts";
import type { Forward } from "./delivery.ts";
import type { Hold } from "./payment.ts";

/** A hold's terms, whether or not it is held. */
export type Terms = Pick<Hold, "network" | "contract" | "id" | "info">;

/** The most contracts (ERC-1271) whose signatures are checked for one forward. */
const MOST_ASKED = 16;

interface Known {
  readonly contracts: readonly EscrowContract[];
  readonly chain: Pick<EscrowChain, "holdById" | "holdsByTransaction" | "isSigned">;
}

/**
 * Returns the terms in a forwarded body, whether or not they are held; null without terms or for an unknown contract.
 */
export function namedIn({ contracts }: Pick<Known, "contracts">, { paymentInfo: info }: Forward): Terms | null {
  const contract = contracts.find(({ address }) => address === info?.operator);
  if (contract === undefined || info === undefined) return null;
  const { network, address, custody } = contract;
  return {
    network,
    contract: address,
    info,
    id: paymentId({ chainId: NETWORKS[network].chainId, escrow: custody }, info),
  };
}

/** Returns the holds that a forward names. A transaction may contain many. */
export async function holdsNamed(known: Known, forward: Forward): Promise<readonly Hold[]> {
  const [current] = known.contracts;
  const arbiterOf = (hold: Hold) => known.contracts.find(({ address }) => address === hold.contract)?.arbiter;
  // An earlier contract with another arbiter does not accept our decisions, so only the clock ends its holds.
  return (await read(known, forward)).filter((hold) => arbiterOf(hold) === current?.arbiter);
}

async function read(known: Known, forward: Forward): Promise<readonly Hold[]> {
  const { payment_id, transaction } = forward;
  if (transaction !== undefined) return known.chain.holdsByTransaction(transaction);
  const id = payment_id ?? namedIn(known, forward)?.id;
  const hold = id === undefined ? null : await known.chain.holdById(id);
  return hold === null ? [] : [hold];
}

/** Several holds match, so the caller must name one of these. */
export interface Ambiguous {
  readonly refused: "ambiguous";
  readonly payments: readonly Hex[];
}

/**
 * Returns the hold whose merchant signed, or null. An account's signature decides, whatever contracts claim: a contract
 * that accepts any signature, as the merchant of another hold in the same transaction, changes nothing.
 */
export async function signedAmong(
  { chain }: Known,
  holds: readonly Hold[],
  { signature, digestOf }: { readonly signature: Hex; readonly digestOf: (hold: Hold) => Hex },
): Promise<Hold | Ambiguous | null> {
  const own = holds.find((hold) => isAccountSignature(hold.info.receiver, digestOf(hold), signature));
  if (own !== undefined) return own;
  const ambiguous = { refused: "ambiguous", payments: holds.map(({ id }) => id) } as const;
  if (holds.length > MOST_ASKED) return ambiguous;
  const answers = await Promise.all(holds.map((hold) => chain.isSigned(hold.info.receiver, digestOf(hold), signature)));
  const [first = null, ...others] = holds.filter((_, place) => answers[place] === true);
  return others.length === 0 ? first : ambiguous;
}
