import type { Block, HashedBlock } from "../platform/chain/nodes.ts";
import type { Chain } from "../platform/chain/view.ts";
import type { Asker } from "../platform/http/request.ts";
import type { Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";

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

/** A transaction whose log was found; `unfinished`: asked again, the search goes on; `nowhere`: a minute of complete searches has found nothing. */
export type Searched = { readonly transaction: Hex } | "unfinished" | "nowhere";

/**
 * Reads authorizations of USDC on one chain. Every method rejects if the chain cannot be read, and answers what one node
 * shows: nodes behind one address take turns, and some lag or have pruned what is old. Of several nodes, each `reading`,
 * counted from 0 (the default), asks another one first.
 */
export interface AuthorizationReader extends Pick<Chain, "verifyContractSignature" | "isDeployed"> {
  /** Shared: very many are read with one call, and one a moment ago serves everybody. Of very many, some are refused. */
  state(name: NonceName, asker: Asker): Promise<NonceReading>;
  /** As `state`, but requested now. */
  stateAgain(name: NonceName, asker: Asker, reading?: number): Promise<NonceReading>;
  /** The older of two readings that were requested separately; null if there are none. */
  final(): Promise<HashedBlock | null>;
  /** How this transaction ended the nonce; null if it did not, or if the node does not know it. */
  endIn(transaction: Hex, name: NonceName, reading?: number): Promise<NonceEnd | null>;
  /** Searches the logs of about a day before the end of the period, in few calls. */
  search(name: NonceName, period: Period): Promise<Searched>;
  /** The first block at or after this time, or one soon after it, of those up to a final one that is not before it. */
  blockSince(time: bigint, final: HashedBlock, reading?: number): Promise<HashedBlock>;
  /** Whether the nonce had been used by the end of this block. Rejects if the node has not kept that. */
  usedBy(name: NonceName, block: number, reading?: number): Promise<boolean>;
  /** The hash of the block at this height; null if the node has none. */
  hashAt(block: number, reading?: number): Promise<Hex | null>;
}

/** A transaction that may have ended a nonce, from our own journal; null if it is none of ours. */
export type KnownTransaction = (network: Network, name: NonceName) => Promise<Hex | null>;

/** What final blocks have shown, kept for all processes. What is kept may be dropped; it never becomes wrong. */
export interface FinalFacts {
  /** How the nonce ended, and the block that `putUnused` has kept for this `validBefore`; null for what is not kept. */
  get(name: NonceName, validBefore: bigint | null): Promise<FactsKept>;
  putEnd(name: NonceName, end: NonceEnd): Promise<void>;
  /** Keeps a final block, not before `validBefore`, before which the nonce was not used. Resolves with the one kept first. */
  putUnused(name: NonceName, validBefore: bigint, block: HashedBlock): Promise<HashedBlock>;
}

export interface FactsKept {
  readonly end: NonceEnd | null;
  readonly unusedBefore: HashedBlock | null;
}

/** Somebody asked what became of an authorization. The question is free and unsigned: all that is known of who asked is where it came from. */
export interface StatusAsked {
  readonly network: Network;
  /** In lower case. */
  readonly from: Address;
  /** In lower case. */
  readonly nonce: Hex;
  readonly at: Date;
  /** The key that the client's requests are counted under. */
  readonly client: string;
}

/**
 * Hears of every well-formed question before it is answered, also of one that is answered from memory or not at all.
 * Anybody can ask anything any number of times, so it must be cheap. What it rejects with is logged and changes nothing.
 */
export type HearAsked = (asked: StatusAsked) => Promise<void>;
