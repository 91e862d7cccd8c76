import type { Address, Hex } from "viem";

/** What the chain shows of one authorization. */
export interface Settled {
  readonly transaction: Hex;
  readonly to: Address;
  /** In atomic units. */
  readonly value: bigint;
}

/** The chain, as an exam reads it. */
export interface Ledger {
  /** CAIP-2. */
  readonly network: `eip155:${number}`;
  /** The newest block's time, in Unix seconds. */
  readonly now: () => Promise<number>;
  /** The newest block: what the exam causes comes after it. */
  readonly block: () => Promise<bigint>;
  /** The transfer that this authorization has made after a block; null if it has made none. */
  readonly settlement: (given: {
    readonly asset: Address;
    readonly from: Address;
    readonly nonce: Hex;
    readonly since: bigint;
  }) => Promise<Settled | null>;
  /**
   * What these authorizations have moved from the account to others after a block, in atomic units. Whatever else the
   * account pays for does not count.
   */
  readonly spent: (given: {
    readonly asset: Address;
    readonly from: Address;
    readonly nonces: readonly Hex[];
    readonly since: bigint;
  }) => Promise<bigint>;
}
