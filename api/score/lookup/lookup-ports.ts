import type { Address, Hex } from "../../platform/wallet.ts";
import type { Examined, Payees } from "./examine.ts";
import type { Inflows } from "./inflows.ts";

/** A final block with an authorized payment, whose nonce shows in a node's answer that it has this block. */
export interface Mark {
  readonly block: number;
  readonly hash: Hex;
  readonly nonce: Hex;
}

/** What the index says of several wallets, all after one block. */
export interface PayeesReading {
  readonly scope: "full" | "selective";
  readonly firstBlock: number;
  readonly asOfBlock: number;
  readonly wallets: readonly Payees[];
}

export interface PayeesIndex {
  /** Null while the index is unavailable. */
  payees(wallets: readonly Address[], now: Date): Promise<PayeesReading | null>;
}

/** What of the chain inflows are counted from: others make other sums. */
export interface Basis {
  readonly firstBlock: number;
  /** Addresses of the service, from which nothing counts; in lower case. */
  readonly ignored: readonly Address[];
}

/** The inflows of a wallet, as far as they were read. */
export interface Progress {
  readonly wallet: Address;
  /** The mark up to which all are in; null before the first. */
  readonly through: Mark | null;
  readonly inflows: Inflows;
}

export interface Snapshot extends Examined {
  readonly wallet: Address;
  readonly block: number;
  readonly block_hash: Hex;
  readonly as_of_block: number;
  readonly made_at: Date;
}

/** Keeps look-ups: final blocks do not change, so neither does what is in here. */
export interface LookupStore {
  /** What is known of these wallets, claimed or not. */
  known(basis: Basis, wallets: readonly Address[]): Promise<readonly Progress[]>;
  /** Those of them that nobody else is reading, for `seconds`; a claim that is not renewed by `save` lapses. */
  claim(basis: Basis, wallets: readonly Address[], by: Claim): Promise<readonly Progress[]>;
  /** Stores how far a wallet was read, unless it is known further, and renews the claim unless it has passed to somebody else. */
  save(basis: Basis, progress: readonly Progress[], by: Claim): Promise<void>;
  release(basis: Basis, wallets: readonly Address[], by: Claim): Promise<void>;
  snapshots(basis: Basis, wallets: readonly Address[]): Promise<readonly Snapshot[]>;
  keep(basis: Basis, snapshot: Snapshot): Promise<void>;
}

export interface Claim {
  readonly token: string;
  readonly seconds: number;
}

/** Counts requests to nodes, for all processes. */
export interface LookupBudget {
  /** @throws BudgetSpent if this client, or all together, have had theirs */
  spend(client: string): Promise<void>;
}

/** There will be more after so many seconds. */
export class BudgetSpent extends Error {
  override readonly name = "BudgetSpent";
  readonly whose: "client" | "all";
  readonly retryAfterSeconds: number;

  constructor(whose: "client" | "all", retryAfterSeconds: number) {
    super(`the look-ups of this hour are spent: ${whose}`);
    this.whose = whose;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Reads transfers of final blocks from nodes. */
export interface InflowReader {
  /** The newest final block to look up to; null while no authorized payment is final. */
  final(basis: Basis, spend: () => Promise<void>): Promise<Mark | null>;
  /** Reads on to `end`, and hands over every step. */
  read(basis: Basis, plan: ReadPlan): Promise<void>;
}

export interface ReadPlan {
  readonly from: readonly Progress[];
  readonly end: Mark;
  readonly spend: () => Promise<void>;
  readonly save: (progress: readonly Progress[]) => Promise<void>;
}
