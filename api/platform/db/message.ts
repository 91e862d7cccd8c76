import type pg from "pg";

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
 * Sends statements on a pipelining connection, none of them waiting for the answer to the one before. Returns once the
 * server has answered each of them, or rejects then with the first failure.
 */
export async function sendOn(
  client: pg.PoolClient,
  statements: readonly pg.QueryConfig[],
): Promise<readonly pg.QueryResult[]> {
  const answers = await Promise.allSettled(statements.map((statement) => client.query(statement)));
  return answers.map((answer) => {
    if (answer.status === "rejected") throw answer.reason;
    return answer.value;
  });
}
