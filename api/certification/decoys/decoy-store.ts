import type { Network } from "../../kernel/networks.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import type { Authorization } from "../../payments/scheme.ts";

/** A decoy address and the session it belongs to. */
export interface DecoyOf {
  readonly session: string;
  readonly address: Address;
  /** The block of the session's entry: nobody could have known the address before. */
  readonly fromBlock: number;
}

export interface DecoyStore {
  /** The decoys of sessions started after `since`, oldest first. */
  recent(since: Date): Promise<readonly DecoyOf[]>;
}

/** USDC that reached an address. */
export interface Received {
  readonly from: Address;
  readonly to: Address;
  readonly value: bigint;
  readonly transaction: Hex;
  readonly logIndex: number;
}

export interface UsdcTransfers {
  /** Atomic USDC of each address, in order, read at one block. */
  balancesOf(addresses: readonly Address[]): Promise<readonly bigint[]>;
  /** Transfers to an address in final blocks, oldest first. */
  receivedBy(address: Address, fromBlock: number): Promise<readonly Received[]>;
  /** For each nonce, in order, whether it was used or canceled. */
  areUsed(authorizations: readonly { readonly payer: Address; readonly nonce: Hex }[]): Promise<readonly boolean[]>;
}

/** Signs for decoys without exposing their keys. */
export interface DecoySigner {
  sign(session: string, network: Network, authorization: Authorization): Promise<Hex>;
}
