import { askNode, type Call } from "../chain/rpc.ts";
import type { Position } from "./view.ts";

const LATEST: Call = { id: 0, method: "eth_getBlockByNumber", params: ["latest", false] };

interface Seen {
  readonly number: bigint;
  /** Unix seconds. */
  readonly time: bigint;
  readonly at: number;
}

/** The chain's head, and what it was a moment ago. */
export interface HeadWatch {
  /** Reads it. */
  readonly look: () => Promise<Seen>;
  /** The head that was last read this many real milliseconds ago or earlier. */
  readonly asOf: (lagMs: number) => Seen;
}

export async function watchHead(rpcUrl: string): Promise<HeadWatch> {
  const ask = askNode(rpcUrl);
  let seen: Seen[] = [];
  const look = async () => {
    const { number, timestamp } = (await ask(LATEST)).result as Record<"number" | "timestamp", string>;
    const found = { number: BigInt(number), time: BigInt(timestamp), at: performance.now() };
    const last = seen.at(-1);
    if (last === undefined || last.number < found.number) seen.push(found);
    // A reorganization: no backend remembers what was there.
    else if (last.number > found.number) seen = [found];
    if (seen.length > 2_000) seen = seen.slice(-1_000);
    return seen.at(-1) ?? found;
  };
  await look();
  return {
    look,
    asOf: (lagMs) => {
      const moment = performance.now() - lagMs;
      return (seen.findLast(({ at }) => at <= moment) ?? seen[0]) as Seen;
    },
  };
}

const notNegative = (number: bigint): bigint => (number > 0n ? number : 0n);

/** Where a node with this head stands. */
export const positionAt = (
  head: bigint,
  { safeBehind, finalizedBehind }: { readonly safeBehind: number; readonly finalizedBehind: number },
): Position => ({
  head,
  safe: notNegative(head - BigInt(safeBehind)),
  finalized: notNegative(head - BigInt(finalizedBehind)),
});
