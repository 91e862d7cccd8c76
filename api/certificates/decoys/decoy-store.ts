import type { Network } from "../../platform/networks.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { Authorization } from "../../payments/scheme.ts";

/** A decoy address and the session it belongs to. */
export interface DecoyOf {
  /** One of the session's `decoyNames`. */
  readonly session: string;
  readonly address: Address;
  /** The block of the session's entry: nobody could have known the address before. Null once all of it has been read. */
  readonly fromBlock: number | null;
}

/** USDC that moved, in atomic units. */
export interface Transfer {
  readonly from: Address;
  readonly to: Address;
  readonly value: bigint;
  readonly block: number;
  readonly transaction: Hex;
  readonly logIndex: number;
}

/** A transfer as a decoy's books show it: to it, or from it back to a sender. */
export interface Entry extends Pick<Transfer, "value" | "block" | "transaction" | "logIndex"> {
  readonly decoy: Address;
  readonly session: string;
  readonly other: Address;
  readonly outgoing: boolean;
}

/** What one sender has sent to one decoy and got back, in final blocks. Amounts in atomic units. */
export interface Debt {
  readonly decoy: Address;
  readonly session: string;
  readonly sender: Address;
  readonly received: bigint;
  readonly returned: bigint;
  /** The refund that was signed last and that no final block shows yet. */
  readonly pending: Pending | null;
  /** How often it was taken up since the last refund that is final. */
  readonly attempts: number;
}

/** An authorization's terms; `validBefore` in unix seconds. */
export interface Pending {
  readonly value: bigint;
  readonly validBefore: bigint;
}

export interface DueTerms {
  readonly now: Date;
  readonly least: bigint;
  readonly atMost: number;
  readonly atMostADay: number;
}

/** What decoys received and gave back. Times are the caller's. */
export interface DecoyStore {
  /** The block to read from, for the one caller that is to do this pass; null for every other until `next`. */
  claim(now: Date, next: Date): Promise<number | null>;
  /** The decoys of sessions started after `since`, and those whose refund is pending. */
  watched(since: Date): Promise<readonly DecoyOf[]>;
  /**
   * Adds entries, each once, and moves the position, both or neither. Returns those that are new; null if another caller
   * has moved the position meanwhile.
   */
  record(
    entries: readonly Entry[],
    position: { readonly from: number; readonly to: number; readonly now: Date },
  ): Promise<readonly Entry[] | null>;
  /** Takes up debts that are due, those waiting longest first; each is due again later, and later every time. */
  due(terms: DueTerms): Promise<readonly Debt[]>;
  /** Notes a refund before it is signed; false if the debt has changed. */
  pend(debt: Debt, refund: Pending): Promise<boolean>;
  /** Notes that a refund is about to be submitted. */
  submitting(debt: Debt, now: Date): Promise<void>;
}

export interface FinalHead {
  readonly number: number;
  /** Unix seconds. */
  readonly time: bigint;
}

export interface UsdcTransfers {
  finalHead(): Promise<FinalHead>;
  /** Transfers from and to these addresses, both blocks included, oldest first. */
  transfersOf(
    addresses: readonly Address[],
    blocks: { readonly from: number; readonly to: number },
  ): Promise<readonly Transfer[]>;
  /** For each nonce, in order, whether it was used or canceled. */
  areUsed(authorizations: readonly { readonly payer: Address; readonly nonce: Hex }[]): Promise<readonly boolean[]>;
}

/** Signs for decoys without exposing their keys. */
export interface DecoySigner {
  sign(session: string, network: Network, authorization: Authorization): Promise<Hex>;
}
