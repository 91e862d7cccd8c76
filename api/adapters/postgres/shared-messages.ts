import pg from "pg";
import { isDisconnected } from "./connection.ts";
import { sendTogether } from "./message.ts";

/** Statements that share one message at most. */
const MOST_TOGETHER = 32;
/** Messages on their way at once: what comes meanwhile shares the next one. */
const MOST_SENT = 3;

export interface Statement extends pg.QueryConfig {
  readonly name: string;
}

/** Runs a statement that needs no transaction of its own, and resolves once it is committed. */
export type Share = <Row extends pg.QueryResultRow>(
  statement: Statement,
  /** Locks are taken in this order, so that messages cannot deadlock. */
  order: string,
) => Promise<pg.QueryResult<Row>>;

interface Waiting {
  readonly statement: Statement;
  readonly order: string;
  readonly resolve: (result: pg.QueryResult) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Statements that come together share a round trip and a commit. When one of them fails, each is sent again on its own,
 * unless the connection was lost: what has taken effect then is unknown.
 */
export function createSharedMessages(pool: pg.Pool): Share {
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
        // A server that does not answer would keep the others waiting once more.
        if (!isAnswered) for (const { reject } of waiting.splice(0)) reject(new Error(UNANSWERED));
        plan();
      });
    }
  };
  return (statement, order) =>
    new Promise((resolve, reject) => {
      waiting.push({ statement, order, resolve: resolve as Waiting["resolve"], reject });
      plan();
    });
}

const UNANSWERED = "Connection terminated: the statement was not sent, because those before it were not answered";

/** False if the server did not answer. */
async function settle(pool: pg.Pool, batch: readonly Waiting[]): Promise<boolean> {
  try {
    const statements = batch.map(({ statement }) => statement);
    for (const [at, result] of (await sendTogether(pool, statements)).entries()) batch[at]?.resolve(result);
    return true;
  } catch (error) {
    const isAnswered = !isDisconnected(error);
    if (batch.length > 1 && isAnswered && !isFatal(error))
      return (await Promise.all(batch.map((one) => settle(pool, [one])))).every(Boolean);
    for (const { reject } of batch) reject(error);
    return isAnswered;
  }
}

/** The session has ended: whether the transaction had been committed is not known for certain. */
const isFatal = (error: unknown): boolean => error instanceof pg.DatabaseError && error.severity === "FATAL";
