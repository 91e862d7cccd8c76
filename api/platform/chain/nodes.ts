import { AsyncLocalStorage } from "node:async_hooks";
import type { Hex } from "../wallet.ts";

/**
 * Several URLs take turns, and so do nodes behind one: of so many readings, one is of a node that keeps up and has pruned
 * nothing.
 */
export const READINGS = 3;

/** So many of them must agree before anything is called final. */
export const AGREEING = 2;

const turns = new AsyncLocalStorage<number>();

/** How many nodes later than usual the current work begins. */
export const currentTurn = (): number => turns.getStore() ?? 0;

/**
 * Does the work with another node first, where there are several: repeating a question to the node that has just answered
 * it shows nothing new.
 * @param reading counted from 0, which changes nothing
 */
export const asReading = <Seen>(reading: number, work: () => Promise<Seen>): Promise<Seen> =>
  turns.run(currentTurn() + reading, work);

/** A block as a node shows it; time in Unix seconds. */
export interface Block {
  readonly number: number;
  readonly time: bigint;
}

export interface HashedBlock extends Block {
  readonly hash: Hex;
}

/**
 * What the first node shows that knows it; null if none does. A node that has pruned it answers with nothing or with an
 * error, so neither is an answer while another one may know. Rejects if none knows and one could not be asked.
 */
export async function firstShown<Value>(ask: (reading: number) => Promise<Value | null>): Promise<Value | null> {
  let failure: { readonly error: unknown } | null = null;
  for (let reading = 0; reading < READINGS; reading++) {
    try {
      const shown = await ask(reading);
      if (shown !== null) return shown;
    } catch (error) {
      failure = { error };
    }
  }
  if (failure !== null) throw failure.error;
  return null;
}

/** What has become of a block: nodes agree that it is on the chain, they do not, or it is not there any more. */
export type BlockAgreement = "agreed" | "contested" | "gone";

/**
 * Whether nodes have this block at its height. A lagging node may still have a branch that the chain has left, so a single
 * one that shows another block is heard; one that shows none has not come so far, or has pruned it. Rejects if none shows any.
 */
export async function agreementOn(
  reader: { hashAt(block: number, reading: number): Promise<Hex | null> },
  block: Pick<HashedBlock, "number" | "hash">,
): Promise<BlockAgreement> {
  const shown: Hex[] = [];
  for (let reading = 0; reading < READINGS; reading++) {
    const hash = await reader.hashAt(block.number, reading).catch(() => null);
    if (hash !== null) shown.push(hash);
  }
  if (shown.length === 0) throw new Error(`no node shows block ${block.number}`);
  const same = shown.filter((hash) => hash === block.hash).length;
  if (same === 0) return "gone";
  return same === shown.length && same >= AGREEING ? "agreed" : "contested";
}
