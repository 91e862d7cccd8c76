import { LOOKUPS } from "../../../packages/verifier/src/score/bands.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { Examined, Payees } from "./examine.ts";

/** A transfer of USDC to a wallet; value in atomic USDC. */
export interface Inflow {
  readonly block: number;
  readonly from: Address;
  readonly value: bigint;
}

/** The totals of all transfers to a wallet up to a block. Sums are decimal strings because it is stored as JSON. */
export interface Inflows {
  /** The number of transfers, including ignored ones. */
  readonly count: number;
  /** The block in which they became too many to read, or null. */
  readonly fullAt: number | null;
  readonly sent: Readonly<Record<Address, string>>;
  /** The sender with the largest total as of each block in which it changed, oldest first. */
  readonly leaders: readonly (readonly [block: number, sender: Address])[];
}

export const NO_INFLOWS: Inflows = { count: 0, fullAt: null, sent: {}, leaders: [] };

/**
 * Adds later transfers, in the order of the chain. Those from `ignored` senders do not count. Once there are too many,
 * nothing more is added, so that the result does not depend on how far a look-up has read.
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

/** Returns the sender with the largest total at the end of this block, or null if there is none or it is unknown. */
export function funderAt({ fullAt, leaders }: Inflows, block: number): Address | null {
  if (fullAt !== null && block >= fullAt) return null;
  return leaders.findLast(([from]) => from <= block)?.[1] ?? null;
}

/** A final block with an authorized payment. A node that returns the payment's nonce has this block. */
export interface KnownBlock {
  readonly block: number;
  readonly hash: Hex;
  readonly nonce: Hex;
}

/** The index's data on several wallets, all as of one block. */
export interface PayeesReading {
  readonly scope: "full" | "selective";
  readonly firstBlock: number;
  readonly asOfBlock: number;
  readonly wallets: readonly Payees[];
}

/** The part of the chain from which inflows are counted. Another basis results in other totals. */
export interface Basis {
  readonly firstBlock: number;
  /** The service's addresses, from which transfers do not count, in lowercase. */
  readonly ignored: readonly Address[];
}

/** The inflows of a wallet, up to the last block read. */
export interface Progress {
  readonly wallet: Address;
  /** The mark up to which they are complete, or null before the first. */
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

export interface Claim {
  readonly token: string;
  readonly seconds: number;
}

/** Counts one request to a node. Rejects once the client's budget is spent. */
export type Spend = () => Promise<void>;

export interface ReadPlan {
  readonly from: readonly Progress[];
  readonly end: KnownBlock;
  readonly spend: Spend;
  readonly save: (progress: readonly Progress[]) => Promise<void>;
}
