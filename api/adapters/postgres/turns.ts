import pg from "pg";
import type { Transaction } from "../../kernel/transaction.ts";
import { inTransaction, transactionOn } from "./connection.ts";

/** Works that share one transaction at most. */
const MOST_TOGETHER = 32;

type Work<T> = (transaction: Transaction) => Promise<T>;

interface Waiting {
  readonly work: Work<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Runs work in its turn in a queue, and resolves once it is committed. */
export type InTurn = <T>(queue: string, work: Work<T>) => Promise<T>;

/**
 * Queues whose work runs one after another, whatever process asks. What waits while a transaction runs shares the next one, so a
 * queue takes one connection and one commit for many. When one of them fails, all are rolled back and each runs on its own: work
 * may run more than once, and only what commits counts.
 */
export function createTurns(pool: pg.Pool): InTurn {
  const queues = new Map<string, Waiting[]>();
  const drain = async (queue: string, waiting: Waiting[]) => {
    while (waiting.length > 0) await settle(pool, queue, waiting.splice(0, MOST_TOGETHER));
    queues.delete(queue);
  };
  return <T>(queue: string, work: Work<T>) =>
    new Promise<T>((resolve, reject) => {
      const one: Waiting = { work, resolve: resolve as Waiting["resolve"], reject };
      const waiting = queues.get(queue);
      if (waiting !== undefined) return void waiting.push(one);
      const first = [one];
      queues.set(queue, first);
      void drain(queue, first);
    });
}

async function settle(pool: pg.Pool, queue: string, batch: readonly Waiting[]): Promise<void> {
  try {
    const results = await together(pool, queue, batch);
    for (const [index, { resolve }] of batch.entries()) resolve(results[index]);
  } catch (error) {
    const [one, ...others] = batch;
    if (others.length === 0) one?.reject(error);
    else for (const each of batch) await settle(pool, queue, [each]);
  }
}

/** The lock orders processes; it is released with the transaction. */
const together = (pool: pg.Pool, queue: string, batch: readonly Waiting[]): Promise<unknown[]> =>
  inTransaction(
    pool,
    async (client) => {
      const transaction = transactionOn(client);
      const results: unknown[] = [];
      for (const { work } of batch) results.push(await work(transaction));
      return results;
    },
    [`SELECT pg_advisory_xact_lock(hashtext(${pg.escapeLiteral(queue)}))`],
  );
