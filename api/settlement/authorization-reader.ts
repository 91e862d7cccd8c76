import type { Network } from "../kernel/networks.ts";
import type { Address, Hex } from "../kernel/wallet.ts";

/** A block as a node shows it; time in Unix seconds. */
export interface Block {
  readonly number: number;
  readonly time: bigint;
}

export interface HashedBlock extends Block {
  readonly hash: Hex;
}

/** A nonce's state at the newest block of the node that answered. */
export interface NonceReading {
  readonly used: boolean;
  readonly at: Block;
}

/** The transaction that ended a nonce. */
export interface NonceEnd {
  readonly transaction: Hex;
  readonly block: HashedBlock;
  /** What was transferred; null if the payer canceled the nonce instead. Atomic units. */
  readonly transfer: { readonly to: Address; readonly value: bigint } | null;
}

/** (payer, nonce) on one network, in lower case: the name of an authorization. */
export interface NonceName {
  readonly from: Address;
  readonly nonce: Hex;
}

/** When a nonce may have been used, as far as that is known, in Unix seconds. */
export interface Period {
  readonly after: bigint | null;
  readonly before: bigint | null;
  /** A reading that shows the nonce used. */
  readonly seen: Block;
}

/** `unfinished`: asked again, the search goes on. `nowhere`: a minute of complete searches has found nothing. */
export type Searched = { readonly found: NonceEnd } | "unfinished" | "nowhere";

/** What has become of a block: it is final, it is not yet, or it is not on the chain that the node knows. */
export type BlockStanding = "final" | "pending" | "unknown";

/** Reads authorizations of USDC on one chain. Every method rejects if the chain cannot be read. */
export interface AuthorizationReader {
  /** Shared: very many are read with one call, and one a moment ago serves everybody. */
  state(name: NonceName): Promise<NonceReading>;
  /** As `state`, but requested now. */
  stateAgain(name: NonceName): Promise<NonceReading>;
  /** The older of two readings that were requested separately; null if there are none. */
  final(): Promise<HashedBlock | null>;
  /** How this transaction ended the nonce; null if it did not, or is not mined. */
  endIn(transaction: Hex, name: NonceName): Promise<NonceEnd | null>;
  /** Searches the logs of about a day before the end of the period, in few calls. */
  search(name: NonceName, period: Period): Promise<Searched>;
  standing(block: HashedBlock): Promise<BlockStanding>;
  /** Whether a contract wallet says that it signed the digest (ERC-1271). */
  verifyContractSignature(payer: Address, digest: Hex, signature: Hex): Promise<boolean>;
}

/** A transaction that may have ended a nonce, from our own journal; null if it is none of ours. */
export type KnownTransaction = (network: Network, name: NonceName) => Promise<Hex | null>;
