import type { Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";

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
