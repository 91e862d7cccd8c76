import { LOOKUPS } from "../../../packages/verifier/src/score/bands.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { Examined, Payees } from "./examine.ts";

/** A transfer of USDC to a wallet; value in atomic USDC. */
export interface Inflow {
  readonly block: number;
  readonly from: Address;
  readonly value: bigint;
}

/** What all transfers to a wallet up to a block come to. As JSON: sums are decimal texts. */
export interface Inflows {
  /** How many there were, those that count for nothing included. */
  readonly count: number;
  /** The block with which they became too many to be read; null while they are not. */
  readonly fullAt: number | null;
  /** What each sender has sent in all. */
  readonly sent: Readonly<Record<Address, string>>;
  /** Who had sent the most by the end of a block, from that block on; oldest first. */
  readonly leaders: readonly (readonly [block: number, sender: Address])[];
}

export const NO_INFLOWS: Inflows = { count: 0, fullAt: null, sent: {}, leaders: [] };

/**
 * Adds later transfers, in the order of the chain. Those from `ignored` senders count for nothing. Once they are too many,
 * nothing more is added: then it makes no difference how far a look-up has read.
 */
export function addInflows(before: Inflows, inflows: readonly Inflow[], ignored: ReadonlySet<Address>): Inflows {
  if (before.fullAt !== null) return before;
  const sent = new Map(Object.entries(before.sent).map(([sender, sum]) => [sender as Address, BigInt(sum)]));
  const leaders = new Map(before.leaders);
  let [count, fullAt]: [number, number | null] = [before.count, null];
  let leader = before.leaders.at(-1)?.[1] ?? null;
  for (const { block, from, value } of inflows) {
    count += 1;
    if (count > LOOKUPS.mostInflows) {
      fullAt = block;
      break;
    }
    if (value === 0n || ignored.has(from)) continue;
    const sum = (sent.get(from) ?? 0n) + value;
    sent.set(from, sum);
    if (leader !== null && sum <= (sent.get(leader) ?? 0n)) continue;
    if (leader !== from) leaders.set(block, from);
    leader = from;
  }
  const sums = Object.fromEntries([...sent].map(([sender, sum]) => [sender, String(sum)]));
  return { count, fullAt, sent: sums, leaders: [...leaders] };
}

/** Who had sent the most by the end of this block; null if nobody had, or if that cannot be told. */
export function funderAt({ fullAt, leaders }: Inflows, block: number): Address | null {
  if (fullAt !== null && block >= fullAt) return null;
  return leaders.findLast(([from]) => from <= block)?.[1] ?? null;
}

/** A final block with an authorized payment, whose nonce shows in a node's answer that it has this block. */
export interface KnownBlock {
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
  readonly through: KnownBlock | null;
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

/** Reads transfers of final blocks from nodes. */
export interface InflowReader {
  /** The newest final block to look up to; null while no authorized payment is final. */
  final(basis: Basis, spend: () => Promise<void>): Promise<KnownBlock | null>;
  /** Reads on to `end`, and hands over every step. */
  read(basis: Basis, plan: ReadPlan): Promise<void>;
}

export interface ReadPlan {
  readonly from: readonly Progress[];
  readonly end: KnownBlock;
  readonly spend: () => Promise<void>;
  readonly save: (progress: readonly Progress[]) => Promise<void>;
}
