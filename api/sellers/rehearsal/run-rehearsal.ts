import { beginHolding, createRunner, type ExamRunner, type HoldingParts } from "../run-exam.ts";
import { INTERRUPTED, REHEARSAL_NETWORK, type RehearsalOrder, type RehearsalResult, resultOf } from "./rehearsal.ts";
import type { RehearsalStore } from "./rehearsal-store.ts";

export interface RehearsalRunnerParts extends HoldingParts {
  readonly store: Pick<RehearsalStore, "take" | "complete">;
}

/** Runs each rehearsal once. One that breaks off leaves behind only a payment in test money. */
export const createRehearsalRunner = (parts: RehearsalRunnerParts): ExamRunner =>
  createRunner(
    () => parts.store.take(),
    async ({ id, order }) => parts.store.complete(id, await outcome(parts, order)),
  );

async function outcome(parts: RehearsalRunnerParts, order: RehearsalOrder): Promise<RehearsalResult> {
  try {
    const holding = await beginHolding(parts, new AbortController().signal);
    const examined = { ...order, amount: BigInt(order.amount), network: REHEARSAL_NETWORK };
    return resultOf(await holding.examine(examined, async () => undefined));
  } catch (error) {
    parts.log.warn({ err: error, url: order.url }, "a rehearsal of the seller's exam did not finish");
    const why = error instanceof Error ? error.message : String(error);
    return INTERRUPTED(`The rehearsal could not be held, and nothing was judged: ${why}`);
  }
}
