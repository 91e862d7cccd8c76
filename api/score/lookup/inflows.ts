import { LOOKUPS } from "../../../packages/verifier/src/score/bands.ts";
import type { Address } from "../../platform/wallet.ts";

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
