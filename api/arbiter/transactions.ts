import type { TransactionFact } from "../../packages/verifier/src/verdict/v2/evidence.ts";
import type { Address } from "../platform/wallet.ts";

/** A transaction to read, and the wallet whose transfers of USDC are looked for in it. */
export interface TransactionQuestion {
  /** CAIP-2. */
  readonly network: string;
  readonly transaction: string;
  readonly from: Address;
}

/** A transfer of USDC. */
export interface WalletTransfer {
  /** In its block. */
  readonly logIndex: number;
  readonly asset: Address;
  readonly to: Address;
  /** Atomic units. */
  readonly value: bigint;
  /** Present if the recipient is an escrow, or what collects payments for one. */
  readonly custody?: true;
}

/**
 * What the chain shows of a transaction. `final` alone is for good: its block is final, and all that is told of it was
 * read twice. `network_not_read`: the service knows no node of that network.
 */
export type TransactionReading =
  | {
      readonly outcome: "final";
      readonly block: number;
      /** Of the block, in Unix seconds. */
      readonly time: number;
      /** The wallet's transfers of more than nothing to others, by log index. */
      readonly transfers: readonly WalletTransfer[];
    }
  | { readonly outcome: Exclude<TransactionFact["outcome"], "final"> };

/** Reads transactions of the service's networks. It resolves whatever happens: a node that fails is `unavailable`. */
export interface Transactions {
  read(asked: TransactionQuestion): Promise<TransactionReading>;
}

/** For claims that are about no transaction. */
export const NO_TRANSACTIONS: Transactions = { read: async () => ({ outcome: "network_not_read" }) };
