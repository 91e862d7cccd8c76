import type pg from "pg";
import type { Transaction } from "../../kernel/transaction.ts";
import { inTransaction, isDisconnected, named, transactionOn } from "./connection.ts";
import type { Question } from "./message.ts";

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

/** What every transaction of a queue begins and ends with. */
export interface Frame {
  /** A statement without parameters. It runs under the queue's lock, so it sees all that earlier turns committed. */
  readonly opening: string;
  /** Is told, before any work, what the opening statement found. */
  readonly begin: (transaction: Transaction, opened: Opened) => void;
  /** Writes what the works have left to write. Only if it resolves does the transaction commit. */
  readonly end: (transaction: Transaction) => Promise<void>;
}

export interface Opened {
  readonly rows: readonly object[];
  /** Several works share the transaction: if any of them fails, each runs again in one of its own. */
  readonly isShared: boolean;
}

/**
 * Queues whose work runs one after another, whatever process asks. What waits while a transaction runs shares the next one, so a
 * queue takes one connection and one commit for many. When one of them fails, all are rolled back and each runs on its own, unless
 * the connection was lost: work may run more than once, and only what commits counts.
 * @param frames by queue; a queue needs none
 */
export function createTurns(pool: pg.Pool, frames: ReadonlyMap<string, Frame> = new Map()): InTurn {
  const queues = new Map<string, Waiting[]>();
  const drain = async (queue: string, waiting: Waiting[]) => {
    const turns = { pool, queue, frame: frames.get(queue) };
    while (waiting.length > 0) await settle(turns, waiting.splice(0, MOST_TOGETHER));
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

interface Turns {
  readonly pool: pg.Pool;
  readonly queue: string;
  readonly frame: Frame | undefined;
}

async function settle(turns: Turns, batch: readonly Waiting[]): Promise<void> {
  try {
    const results = await together(turns, batch);
    for (const [index, { resolve }] of batch.entries()) resolve(results[index]);
  } catch (error) {
    // One after another, works on a database that does not answer would wait long for the same error.
    if (batch.length === 1 || isDisconnected(error)) for (const { reject } of batch) reject(error);
    else for (const each of batch) await settle(turns, [each]);
  }
}

/** The lock orders processes; it is released with the transaction. */
const lock = (queue: string): Question<null> => ({
  statement: named("SELECT pg_advisory_xact_lock(hashtext($1))", [queue]),
  answer: () => null,
});

const opening = (frame: Frame): Question<readonly object[]> => ({
  statement: named(frame.opening, []),
  answer: ({ rows }) => rows,
});

const together = ({ pool, queue, frame }: Turns, batch: readonly Waiting[]): Promise<unknown[]> =>
  inTransaction<unknown[], readonly [null, ...(readonly object[])[]]>(
    pool,
    async (client, [, rows = []]) => {
      const transaction = transactionOn(client);
      frame?.begin(transaction, { rows, isShared: batch.length > 1 });
      const results: unknown[] = [];
      for (const { work } of batch) results.push(await work(transaction));
      await frame?.end(transaction);
      return results;
    },
    [lock(queue), ...(frame === undefined ? [] : [opening(frame)])],
  );
