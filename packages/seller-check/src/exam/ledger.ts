import type { Address, Hex } from "viem";
import type { HoldKey } from "./hold.ts";

/** A settled authorization, as on the chain. */
export interface Settled {
  readonly transaction: Hex;
  readonly block: bigint;
  readonly to: Address;
  /** In atomic units. */
  readonly value: bigint;
}

/** A reason why a token cannot move. It is paused, or one of the two accounts is on its blacklist. */
export type Bar = "paused" | "payer" | "payee";

/** Returns the bars that apply. */
export const barsIn = (state: Readonly<Record<Bar, boolean>>): ReadonlySet<Bar> =>
  new Set((["paused", "payer", "payee"] as const).filter((bar) => state[bar]));

/** The state of one node at one of its blocks. */
export interface Reading {
  /** The block's time, in Unix seconds. */
  readonly time: number;
  /** The payer's balance, in atomic units. */
  readonly balance: bigint;
  /** The used ones among the authorizations. */
  readonly used: ReadonlySet<Hex>;
  /** The conditions that keep payments from the payer to the payee from settling, regardless of the submitter. */
  readonly bars: ReadonlySet<Bar>;
}

/** The location of a held payment's money, as in base/commerce-payments. */
export type HoldState = "not_held" | "held" | "captured" | "returned";

/** Returns the state from the escrow's `paymentState`. */
export const holdState = ([isCollected, capturable, refundable]: readonly [boolean, bigint, bigint]): HoldState => {
  if (!isCollected) return "not_held";
  if (capturable > 0n) return "held";
  return refundable > 0n ? "captured" : "returned";
};

/** Authorizations of one payer. */
export interface Authorizations {
  readonly asset: Address;
  readonly from: Address;
  /** The payee; absent if it does not matter. */
  readonly payee?: Address;
  readonly nonces: readonly Hex[];
}

/** The chain, as an exam reads it. A single reading may come from a node that lags, or is on an abandoned branch. */
export interface Ledger {
  /** CAIP-2. */
  readonly network: `eip155:${number}`;
  /** Whether a node may be behind the chain. A local chain's node is never behind. */
  readonly mayLag: boolean;
  /** The newest block. Everything the exam causes is in later blocks. */
  readonly block: () => Promise<bigint>;
  /** The newest block's time, in Unix seconds. */
  readonly now: () => Promise<number>;
  readonly read: (given: Authorizations) => Promise<Reading>;
  /**
   * Returns the transfer that this authorization made after a block; null if this reading shows none, which proves
   * nothing.
   */
  readonly transfer: (given: {
    readonly asset: Address;
    readonly from: Address;
    readonly nonce: Hex;
    readonly since: bigint;
  }) => Promise<Settled | null>;
  readonly hold: (key: HoldKey) => Promise<HoldState>;
}

/**
 * Thrown for a fault that prevents an exam and is not the seller's: a chain that cannot be read to the end, or a payer
 * without money. Nothing is judged then.
 */
export class ExaminersFault extends Error {}
