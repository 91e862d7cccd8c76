import type { Address, Hex } from "viem";
import type { HoldKey } from "./hold.ts";

/** What the chain shows of one authorization. */
export interface Settled {
  readonly transaction: Hex;
  readonly block: bigint;
  readonly to: Address;
  /** In atomic units. */
  readonly value: bigint;
}

/** What keeps a token from moving: it is paused, or has one of the two on its blacklist. */
export type Bar = "paused" | "payer" | "payee";

/** Those that are so. */
export const barsIn = (state: Readonly<Record<Bar, boolean>>): ReadonlySet<Bar> =>
  new Set((["paused", "payer", "payee"] as const).filter((bar) => state[bar]));

/** What one node shows at one of its blocks. */
export interface Reading {
  /** The block's time, in Unix seconds. */
  readonly time: number;
  /** Of the payer, in atomic units. */
  readonly balance: bigint;
  /** Which of the authorizations are used. */
  readonly used: ReadonlySet<Hex>;
  /** What keeps payments from the payer to the payee from settling, no matter who submits them. */
  readonly bars: ReadonlySet<Bar>;
}

/** Where the money of a held payment is, as base/commerce-payments has it. */
export type HoldState = "not_held" | "held" | "captured" | "returned";

/** What the escrow's `paymentState` says. */
export const holdState = ([isCollected, capturable, refundable]: readonly [boolean, bigint, bigint]): HoldState => {
  if (!isCollected) return "not_held";
  if (capturable > 0n) return "held";
  return refundable > 0n ? "captured" : "returned";
};

/** Authorizations of one payer. */
export interface Authorizations {
  readonly asset: Address;
  readonly from: Address;
  /** Whom they pay; absent where that does not matter. */
  readonly payee?: Address;
  readonly nonces: readonly Hex[];
}

/** The chain, as an exam reads it. One look may be at a node that lags, or has left the chain. */
export interface Ledger {
  /** CAIP-2. */
  readonly network: `eip155:${number}`;
  /** Whether a node may be behind the chain. That of a local chain is the chain. */
  readonly mayLag: boolean;
  /** The newest block: what the exam causes comes after it. */
  readonly block: () => Promise<bigint>;
  /** The newest block's time, in Unix seconds. */
  readonly now: () => Promise<number>;
  readonly read: (given: Authorizations) => Promise<Reading>;
  /** The transfer that this authorization has made after a block; null where the look shows none, which says nothing. */
  readonly transfer: (given: {
    readonly asset: Address;
    readonly from: Address;
    readonly nonce: Hex;
    readonly since: bigint;
  }) => Promise<Settled | null>;
  readonly hold: (key: HoldKey) => Promise<HoldState>;
}
