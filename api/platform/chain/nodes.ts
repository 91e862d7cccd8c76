import { AsyncLocalStorage } from "node:async_hooks";
import type { Hex } from "../wallet.ts";

/**
 * The number of readings for a decision. Several URLs take turns, and so do the nodes behind one, so that at least one
 * reading comes from a node that keeps up and has not pruned.
 */
export const READINGS = 3;

/** The number of nodes that must agree before anything is called final. */
export const AGREEING = 2;

const turns = new AsyncLocalStorage<number>();

/** Returns the offset in the list of nodes at which the current work begins. */
export const currentTurn = (): number => turns.getStore() ?? 0;

/**
 * Runs the work with another node first, if there are several. Repeating a request to the node that has just answered
 * it would show nothing new.
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
 * Returns the value of the first node that has it; null if none does. A node that has pruned it returns null or an
 * error, so neither decides while another node may have it. Rejects if no node has it and one did not answer.
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

/** The agreement on a block: nodes agree that it is on the chain, they disagree, or it is gone. */
export type BlockAgreement = "agreed" | "contested" | "gone";

/**
 * Checks whether nodes have this block at its height. A lagging node may still follow an abandoned branch, so even a
 * single node with another block makes it contested. A node without a block at this height lags or has pruned it.
 * Rejects if no node shows any.
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
