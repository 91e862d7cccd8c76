import type { Block, HashedBlock } from "../platform/chain/nodes.ts";
import type { Chain } from "../platform/chain/view.ts";
import type { Asker } from "../platform/http/request.ts";
import type { Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";

/** A nonce's state at the newest block of the responding node. */
export interface NonceReading {
  readonly used: boolean;
  readonly at: Block;
}

/** The transaction that ended a nonce. */
export interface NonceEnd {
  readonly transaction: Hex;
  readonly block: HashedBlock;
  /** The transfer in atomic units, or null if the payer canceled the nonce. */
  readonly transfer: { readonly to: Address; readonly value: bigint } | null;
}

/** The payer and nonce that identify an authorization on one network, in lower case. */
export interface NonceName {
  readonly from: Address;
  readonly nonce: Hex;
}

/** The time in which a nonce may have been used, in Unix seconds. Null is unknown. */
export interface Period {
  readonly after: bigint | null;
  readonly before: bigint | null;
  /** A reading that shows the nonce used. */
  readonly seen: Block;
}

/** The transaction that was found. `unfinished`: a repeated search continues. `nowhere`: a minute of complete searches found no log. */
export type Searched = { readonly transaction: Hex } | "unfinished" | "nowhere";

/**
 * Reads authorizations of USDC on one chain. Every method rejects if the chain is unreachable, and returns what one node
 * shows. Nodes behind one URL take turns, and some lag or have pruned old state. Each `reading`, counted from 0 (the
 * default), tries another of several nodes first.
 */
export interface AuthorizationReader extends Pick<Chain, "verifyContractSignature" | "isDeployed"> {
  /** Returns a state. Requests are batched into one call, and a recent state is shared. Rejects some of a flood. */
  state(name: NonceName, asker: Asker): Promise<NonceReading>;
  /** Returns a newly requested state. */
  stateAgain(name: NonceName, asker: Asker, reading?: number): Promise<NonceReading>;
  /** Returns the older of two separate readings of the final block, or null. */
  final(): Promise<HashedBlock | null>;
  /** Returns how this transaction ended the nonce, or null if it did not, or the node does not know it. */
  endIn(transaction: Hex, name: NonceName, reading?: number): Promise<NonceEnd | null>;
  /** Searches the logs of about a day before the end of the period, in few calls. */
  search(name: NonceName, period: Period): Promise<Searched>;
  /** Returns the first block at or after this time, or one soon after it, up to a given final block. */
  blockSince(time: bigint, final: HashedBlock, reading?: number): Promise<HashedBlock>;
  /** Returns whether the nonce was used by the end of this block. Rejects if the node has pruned that state. */
  usedBy(name: NonceName, block: number, reading?: number): Promise<boolean>;
  /** Returns the hash of the block at this height, or null if the node has none. */
  hashAt(block: number, reading?: number): Promise<Hex | null>;
}

/** Returns a transaction from our own journal that may have ended a nonce, or null. */
export type KnownTransaction = (network: Network, name: NonceName) => Promise<Hex | null>;

/** Facts from final blocks, stored for all processes. They may be evicted, but never become wrong. */
export interface FinalFacts {
  /** Returns the end of the nonce, and the block that `putUnused` stored for this `validBefore`, each null if not stored. */
  get(name: NonceName, validBefore: bigint | null): Promise<FactsKept>;
  putEnd(name: NonceName, end: NonceEnd): Promise<void>;
  /** Stores a final block at or after `validBefore` before which the nonce was not used. Returns the one stored first. */
  putUnused(name: NonceName, validBefore: bigint, block: HashedBlock): Promise<HashedBlock>;
}

export interface FactsKept {
  readonly end: NonceEnd | null;
  readonly unusedBefore: HashedBlock | null;
}

/** A request for the status of an authorization. It is free and unsigned, so only the client's address is known. */
export interface StatusAsked {
  readonly network: Network;
  /** In lower case. */
  readonly from: Address;
  /** In lower case. */
  readonly nonce: Hex;
  readonly at: Date;
  /** The client's key in the rate limits. */
  readonly client: string;
}

/**
 * Called with every well-formed question before it is answered, even if it is then answered from the cache or fails. Anyone
 * can send any number of questions, so it must be cheap. A rejection is logged and otherwise ignored.
 */
export type HearAsked = (asked: StatusAsked) => Promise<void>;
