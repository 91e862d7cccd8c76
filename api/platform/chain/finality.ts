import type { PublicClient } from "viem";
import type { Hex } from "../wallet.ts";
import type { Allowance } from "./allowance.ts";

/** How long one reading serves everyone. */
const FRESH_MS = 2_000;
/** Two readings further apart are not compared: the older one would hold everything up. */
const PAIRED_MS = 60_000;

export interface FinalBlock {
  readonly number: bigint;
  readonly hash: Hex;
  /** Unix seconds. */
  readonly time: bigint;
}

/** The block that the node tags `finalized`. */
export interface Finality {
  /** One reading made now; it fails while the node does not answer. */
  latest(): Promise<FinalBlock>;
  /** The older of two readings made now, for work that comes along rarely. */
  readTwice(): Promise<FinalBlock>;
  /**
   * The older of two readings that were requested separately: nodes behind one address may disagree about what is final.
   * The newer one serves everyone for two seconds. Null if the allowance does not cover the missing ones.
   */
  confirmed(allowance?: Allowance): Promise<FinalBlock | null>;
  /** The newest that two readings have shown, however long ago: it stays final, and costs no call. Null for none so far. */
  known(): FinalBlock | null;
}

interface Reading {
  readonly block: FinalBlock;
  readonly at: number;
}

export function createFinality(client: PublicClient, now: () => number = () => performance.now()): Finality {
  let last: Reading | null = null;
  let before: Reading | null = null;
  let known: FinalBlock | null = null;
  let reading: Promise<Reading> | null = null;

  const read = (): Promise<Reading> => {
    reading ??= client
      .getBlock({ blockTag: "finalized" })
      .then(({ number, hash, timestamp: time }) => {
        const read = { block: { number, hash, time }, at: now() };
        before = last;
        last = read;
        if (before !== null) known = newer(known, older(read.block, before.block));
        return read;
      })
      .finally(() => {
        reading = null;
      });
    return reading;
  };
  const isFresh = (one: Reading | null): one is Reading => one !== null && now() - one.at < FRESH_MS;
  const pair = () => (isFresh(last) && before !== null && last.at - before.at < PAIRED_MS ? [last, before] : null);

  return {
    latest: async () => (await read()).block,
    readTwice: async () => older((await read()).block, (await read()).block),
    async confirmed(allowance) {
      for (let tries = 0; tries < 2 && pair() === null; tries++) {
        if (allowance && allowance.left() === 0) return null;
        allowance?.spend();
        await read();
      }
      const [one, other] = pair() ?? [];
      if (one === undefined || other === undefined) return null;
      return older(one.block, other.block);
    },
    known: () => known,
  };
}

const older = (one: FinalBlock, other: FinalBlock): FinalBlock => (one.number < other.number ? one : other);

const newer = (one: FinalBlock | null, other: FinalBlock): FinalBlock =>
  one !== null && one.number > other.number ? one : other;
