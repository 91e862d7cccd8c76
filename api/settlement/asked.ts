import type { Network } from "../kernel/networks.ts";
import type { Address, Hex } from "../kernel/wallet.ts";

/** Somebody asked what became of an authorization. Who asked is not known: the question is free and unsigned. */
export interface StatusAsked {
  readonly network: Network;
  /** In lower case. */
  readonly from: Address;
  /** In lower case. */
  readonly nonce: Hex;
  readonly at: Date;
}

/**
 * Hears of every well-formed question before it is answered, also of one that is answered from memory or not at all.
 * Anybody can ask anything any number of times, so it must be cheap. What it rejects with is logged and changes nothing.
 */
export type HearAsked = (asked: StatusAsked) => Promise<void>;
