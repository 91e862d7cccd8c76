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
    this.#readers = statements.map(
      (statement, at) => new pg.Query(statement, (_, result) => answer(result, at)) as unknown as Reader,
    );
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
  const results: pg.QueryResult[] = [];
  try {
    await new Promise<void>((resolve, reject) => {
      const answer: Answering["answer"] = (result, at) => {
        results[at] = result;
      };
      client.query(new Message(statements, { answer, done: (error) => (error === null ? resolve() : reject(error)) }));
    });
    return results;
  } catch (error) {
    // Nobody knows which of them the connection has prepared.
    broken = error as Error;
    throw error;
  } finally {
    client.release(broken);
  }
}
