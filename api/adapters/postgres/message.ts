import pg from "pg";

/** What the library's own query does with the server's answers; its types leave it out. */
interface Reader extends pg.Submittable {
  readonly handleRowDescription: (message: unknown) => void;
  readonly handleDataRow: (message: unknown) => void;
  readonly handleCommandComplete: (message: unknown, connection: pg.Connection) => void;
  readonly handleReadyForQuery: (connection: pg.Connection) => void;
}

/**
 * Named statements in one message: one round trip, one transaction, one commit. They run one after the other, each sees
 * those before it, and an error undoes them all.
 */
class Message implements pg.Submittable {
  /** The client calls it when an answer takes too long. */
  callback: (error: Error | null) => void;
  readonly #readers: readonly Reader[];
  #answered = 0;

  constructor(statements: readonly pg.QueryConfig[], { answer, done }: Answering) {
    this.callback = done;
    this.#readers = statements.map(({ name, text, values }, at) => {
      const query = new pg.Query(text, values ?? [], (_, result) => answer(result, at));
      // The library copies a statement given as one object property by property, which takes longer than the rest.
      return Object.assign(query as unknown as Reader, { name });
    });
  }

  submit(connection: pg.Connection): null {
    const { stream } = connection;
    // Each query would end its own transaction.
    const open = Object.create(connection, { sync: { value: () => undefined } }) as pg.Connection;
    stream.cork();
    for (const reader of this.#readers) reader.submit(open);
    connection.sync();
    stream.uncork();
    return null;
  }

  handleRowDescription(message: unknown): void {
    this.#readers[this.#answered]?.handleRowDescription(message);
  }

  handleDataRow(message: unknown): void {
    this.#readers[this.#answered]?.handleDataRow(message);
  }

  handleCommandComplete(message: unknown, connection: pg.Connection): void {
    this.#readers[this.#answered++]?.handleCommandComplete(message, connection);
  }

  /** The transaction has been committed. */
  handleReadyForQuery(connection: pg.Connection): void {
    for (const reader of this.#readers) reader.handleReadyForQuery(connection);
    this.callback(null);
  }

  handleError(error: Error): void {
    this.callback(error);
  }
}

interface Answering {
  readonly answer: (result: pg.QueryResult, at: number) => void;
  readonly done: (error: Error | null) => void;
}

/** A named statement that reads, and what its result says. */
export interface Question<Answer> {
  readonly statement: pg.QueryConfig;
  readonly answer: (result: pg.QueryResult) => Answer;
}

export const ask = async <Answer>(
  db: Pick<pg.Pool, "query">,
  { statement, answer }: Question<Answer>,
): Promise<Answer> => answer(await db.query(statement));

/**
 * Sends named statements as one message on a connection. Once it has rejected, nobody knows which of them the connection
 * has prepared: it must not be used again.
 */
export async function sendOn(
  client: pg.PoolClient,
  statements: readonly pg.QueryConfig[],
): Promise<readonly pg.QueryResult[]> {
  const results: pg.QueryResult[] = [];
  await new Promise<void>((resolve, reject) => {
    const answer: Answering["answer"] = (result, at) => {
      results[at] = result;
    };
    client.query(new Message(statements, { answer, done: (error) => (error === null ? resolve() : reject(error)) }));
  });
  return results;
}

/**
 * Sends named statements as one message. Rejects if any of them fails, and then none has taken effect, unless the
 * connection was lost before the answer: `isDisconnected`.
 */
export async function sendTogether(
  pool: pg.Pool,
  statements: readonly pg.QueryConfig[],
): Promise<readonly pg.QueryResult[]> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    return await sendOn(client, statements);
  } catch (error) {
    broken = error as Error;
    throw error;
  } finally {
    client.release(broken);
  }
}
