import pg from "pg";
import { isDisconnected, isFatal, sendOn, transactOn, withClient } from "./connection.ts";

/** The most payments whose statements share one transaction. */
const MOST_TOGETHER = 32;
/** The most transactions under way. Statements that arrive meanwhile share the next one. */
const MOST_SENT = 3;

export interface Statement extends pg.QueryConfig {
  readonly name: string;
}

/** Runs a statement that may share a transaction, and resolves once it is committed. */
export type Share = <Row extends pg.QueryResultRow>(
  statement: Statement,
  /** Locks are taken in this order, so that transactions cannot deadlock. */
  order: string,
) => Promise<pg.QueryResult<Row>>;

/** Runs several statements, which take effect together or not at all. */
export type ShareAll = (statements: readonly Statement[], order: string) => Promise<readonly pg.QueryResult[]>;

interface Waiting {
  readonly statements: readonly Statement[];
  readonly order: string;
  readonly resolve: (results: readonly pg.QueryResult[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Creates the queue. Statements that arrive together share a round trip and a commit. When one of them fails, each is
 * sent again alone, unless the connection was lost, because then the outcome is unknown.
 */
export function createSharedMessages(pool: pg.Pool): { readonly share: Share; readonly shareAll: ShareAll } {
  const waiting: Waiting[] = [];
  let sent = 0;
  let isPlanned = false;
  const plan = () => {
    if (isPlanned || waiting.length === 0) return;
    isPlanned = true;
    setImmediate(send);
  };
  const send = () => {
    isPlanned = false;
    while (waiting.length > 0 && sent < MOST_SENT) {
      sent++;
      const batch = waiting.splice(0, MOST_TOGETHER).sort((one, other) => (one.order < other.order ? -1 : 1));
      void settle(pool, batch).then((isAnswered) => {
        sent--;
        // A server that does not answer would keep the others waiting again.
        if (!isAnswered) for (const { reject } of waiting.splice(0)) reject(new Error(UNANSWERED));
        plan();
      });
    }
  };
  const shareAll: ShareAll = (statements, order) =>
    new Promise((resolve, reject) => {
      waiting.push({ statements, order, resolve, reject });
      plan();
    });
  const share = (statement: Statement, order: string) => shareAll([statement], order).then(([result]) => result);
  return { share: share as Share, shareAll };
}

const UNANSWERED = "Connection terminated: the statement was not sent, because those before it were not answered";

/** Returns false if the server did not answer. */
async function settle(pool: pg.Pool, batch: readonly Waiting[]): Promise<boolean> {
  try {
    const results = await sendTogether(
      pool,
      batch.flatMap(({ statements }) => statements),
    );
    let at = 0;
    for (const { statements, resolve } of batch) {
      resolve(results.slice(at, at + statements.length));
      at += statements.length;
    }
    return true;
  } catch (error) {
    const isAnswered = !isDisconnected(error);
    if (batch.length > 1 && error instanceof pg.DatabaseError && !isFatal(error))
      return (await Promise.all(batch.map((one) => settle(pool, [one])))).every(Boolean);
    for (const { reject } of batch) reject(error);
    return isAnswered;
  }
}

/** Sends the statements. A single one is a transaction without BEGIN and COMMIT. */
const sendTogether = (pool: pg.Pool, statements: readonly pg.QueryConfig[]): Promise<readonly pg.QueryResult[]> =>
  withClient(pool, (client) => (statements.length === 1 ? sendOn : transactOn)(client, statements));
