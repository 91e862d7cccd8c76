import pg from "pg";
import { isTraced, traced } from "../telemetry/tracing.ts";
import type { Hex } from "../wallet.ts";

/** A named statement that reads, with a parser for its result. */
export interface Question<Answer> {
  readonly statement: pg.QueryConfig;
  readonly answer: (result: pg.QueryResult) => Answer;
}

export const ask = async <Answer>(
  db: Pick<pg.Pool, "query">,
  { statement, answer }: Question<Answer>,
): Promise<Answer> => answer(await db.query(statement));

/**
 * Sends statements on a pipelining connection without waiting between them. Returns once the server has answered all of
 * them; rejects then with the first failure.
 */
export async function sendOn(
  client: pg.PoolClient,
  statements: readonly pg.QueryConfig[],
): Promise<readonly pg.QueryResult[]> {
  const answers = await Promise.allSettled(
    statements.map((statement) => tracedQuery(statement, () => client.query(statement))),
  );
  return answers.map((answer) => {
    if (answer.status === "rejected") throw answer.reason;
    return answer.value;
  });
}

/**
 * A request that needs the database is answered within ten seconds: at most one wait for a connection and one for a
 * result, whatever happens to the server. The server gives up first, never later than the client, so an abandoned
 * session does not hold locks for long.
 */
const CONNECT_WITHIN_MS = 3_000;
const STATEMENT_WITHIN_MS = 5_000;
const ANSWER_WITHIN_MS = 6_000;
const IDLE_IN_TRANSACTION_MS = 10_000;

/** The limit for the session's settings, so that all three waits stay below ten seconds. */
const SET_WITHIN_MS = 1_000;

/**
 * Set after connecting, because poolers such as PgBouncer refuse a connection whose startup message has parameters that
 * they do not track. Each statement is planned once, and the server notices a lost client.
 */
const SESSION = [
  `statement_timeout = ${STATEMENT_WITHIN_MS}`,
  `idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS}`,
  "plan_cache_mode = force_generic_plan",
  "jit = off",
  "tcp_keepalives_idle = 10",
  "tcp_keepalives_interval = 5",
  "tcp_keepalives_count = 3",
]
  .map((setting) => `SET ${setting}`)
  .join("; ");

/**
 * Creates a pool whose statements are planned once. Every read is by key, so a generic plan is right. Connections that
 * do not answer are dropped, and those unused for ten seconds are closed.
 */
export function connect(connectionString: string, max = 16): pg.Pool {
  const settings: pg.QueryConfig & { readonly query_timeout: number } = { text: SESSION, query_timeout: SET_WITHIN_MS };
  const pool = new pg.Pool({
    connectionString,
    max,
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    idleTimeoutMillis: 10_000,
    query_timeout: ANSWER_WITHIN_MS,
    onConnect: async (client) => void (await client.query(settings)),
    pipeline: true,
  });
  // A broken idle connection is replaced on next use. Without a listener, its error would end the process.
  pool.on("error", () => undefined);
  // A connection that breaks while in use would end it too. The running statement rejects, which is enough.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return isTraced() ? withTracedQueries(pool) : pool;
}

/** A statement's values are parameters, so its text contains no data. */
const tracedQuery = <T>({ text }: pg.QueryConfig, send: () => Promise<T>): Promise<T> =>
  isTraced()
    ? traced(
        `SQL ${/\w+/.exec(text)?.[0] ?? ""}`,
        { kind: "client", attributes: { "db.system.name": "postgresql", "db.query.text": text.slice(0, MOST_TEXT) } },
        send,
      )
    : send();

const MOST_TEXT = 500;

function withTracedQueries(pool: pg.Pool): pg.Pool {
  const query = pool.query.bind(pool) as (said: pg.QueryConfig, values?: unknown[]) => Promise<pg.QueryResult>;
  const traceQuery = (said: pg.QueryConfig | string, values?: unknown[]) => {
    const config = typeof said === "string" ? { text: said, ...(values && { values }) } : said;
    return tracedQuery(config, () => query(config));
  };
  return Object.assign(pool, { query: traceQuery }) as pg.Pool;
}

/** The oldest supported release of PostgreSQL, for the service, its migrations, and its index. */
const OLDEST_POSTGRES = 16;

/** Returns what is wrong with the server's release, or null. */
export async function releaseProblem(db: Pick<pg.ClientBase, "query">): Promise<string | null> {
  const { rows } = await db.query<{ server_version: string }>("SHOW server_version");
  const version = rows[0]?.server_version ?? "";
  return Number.parseInt(version, 10) >= OLDEST_POSTGRES
    ? null
    : `DATABASE_URL is a PostgreSQL ${version}, but ${OLDEST_POSTGRES} or newer is required.`;
}

/** Whether the session has ended, so that the outcome of a running COMMIT is unknown. */
export const isFatal = (error: unknown): boolean => error instanceof pg.DatabaseError && error.severity === "FATAL";

/** Whether the connection failed, rather than the statement, which may have taken effect. */
export function isDisconnected(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof pg.DatabaseError) return false;
  const { code } = error as NodeJS.ErrnoException;
  return /^E[A-Z]+$/.test(code ?? "") || DISCONNECTED.test(error.message);
}

/**
 * Whether the database is unreachable, stopping or starting, full, or canceled the statement (SQLSTATE classes 08, 53
 * and 57), so that a retry may help.
 */
export const isAway = (error: unknown): boolean =>
  isDisconnected(error) || (error instanceof pg.DatabaseError && /^(08|53|57)/.test(error.code ?? ""));

/** The library's messages, which have no code. */
const DISCONNECTED =
  /^(Query read timeout|Connection terminated|timeout exceeded when trying to connect)|not queryable/;

export const bytes = (hex: string): Buffer => Buffer.from(hex.startsWith("0x") ? hex.slice(2) : hex, "hex");
export const hex = (buffer: Buffer): Hex => `0x${buffer.toString("hex")}`;

const BEGIN = { text: "BEGIN" };

/** Sends statements together with COMMIT. */
async function commitOn(
  client: pg.PoolClient,
  statements: readonly pg.QueryConfig[],
): Promise<readonly pg.QueryResult[]> {
  const results = await sendOn(client, [...statements, { text: "COMMIT" }]);
  // In a failed transaction, COMMIT succeeds and rolls back.
  if (results.at(-1)?.command !== "COMMIT") throw new Error("the transaction was rolled back");
  return results.slice(0, -1);
}

/**
 * Sends statements as one transaction, in one round trip. After a lost connection (`isDisconnected`), it may have taken
 * effect.
 */
export async function transactOn(
  client: pg.PoolClient,
  statements: readonly pg.QueryConfig[],
): Promise<readonly pg.QueryResult[]> {
  const [begun, ended] = await Promise.allSettled([client.query(BEGIN), commitOn(client, statements)]);
  if (begun.status === "rejected") throw new Error("Connection terminated: no transaction", { cause: begun.reason });
  if (ended.status === "rejected") throw ended.reason;
  return ended.value;
}

/** The questions for a tuple of answers. */
type Questions<Answers extends readonly unknown[]> = { readonly [At in keyof Answers]: Question<Answers[At]> };

/** Accepts a statement to send together with COMMIT. */
type Last = (statement: pg.QueryConfig) => void;

/**
 * Runs `work` in one transaction. If COMMIT fails, it rejects, and the outcome is unknown.
 * @param first is sent together with BEGIN
 */
export async function inTransaction<T, Answers extends readonly unknown[] = readonly []>(
  pool: pg.Pool,
  work: (client: pg.PoolClient, answers: Answers, last: Last) => Promise<T>,
  first?: Questions<Answers>,
): Promise<T> {
  return withClient(pool, async (client) => {
    const questions: readonly Question<unknown>[] = first ?? [];
    const [, ...results] = await sendOn(client, [BEGIN, ...questions.map(({ statement }) => statement)]);
    const answers = questions.map(({ answer }, at) => answer(results[at] as pg.QueryResult));
    const last: pg.QueryConfig[] = [];
    const result = await work(client, answers as unknown as Answers, (statement) => last.push(statement));
    await commitOn(client, last);
    return result;
  });
}

/** Rolls back anything that `work` leaves unfinished. A failed connection is not used again. */
export const withClient = <T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> =>
  traced("SQL session", { kind: "internal" }, () => onClient(pool, work));

async function onClient<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    return await work(client);
  } catch (error) {
    // A connection that does not answer must not get another statement.
    if (isDisconnected(error) || isFatal(error)) broken = error as Error;
    else if (client.getTransactionStatus() !== "I")
      await client.query("ROLLBACK").catch((rollback: Error) => {
        broken = rollback;
      });
    throw error;
  } finally {
    client.release(broken);
  }
}

const names = new Map<string, string>();

/**
 * Returns a statement's name, so that a connection parses and plans it once. There are few texts: constants, and some
 * that vary with the number of rows.
 */
function nameOf(text: string): string {
  const name = names.get(text) ?? `t${names.size}`;
  names.set(text, name);
  return name;
}

export const named = (text: string, values: readonly unknown[]) => ({
  name: nameOf(text),
  text,
  values: [...values],
});

/** Runs a statement and returns the number of rows it changed. */
export const change = async (pool: pg.Pool, text: string, values: readonly unknown[] = []): Promise<number> =>
  (await pool.query(named(text, values))).rowCount ?? 0;

/** Locks a name until the end of the transaction. */
export const lock = (client: pg.PoolClient, name: string): Promise<pg.QueryResult> =>
  client.query(named("SELECT pg_advisory_xact_lock(hashtext($1))", [name]));

/** Wraps the open transaction of a connection. */
export const transactionOn = (client: pg.PoolClient): Transaction => ({
  query: (text, values) => client.query(named(text, values)),
});

/** A write with its parameters. */
export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/**
 * An open database transaction. Stores receive it so that their writes commit together with the answer, or not at all.
 */
export interface Transaction {
  query<Row extends object = Record<string, unknown>>(
    text: string,
    values: readonly unknown[],
  ): Promise<{ readonly rowCount: number | null; readonly rows: readonly Row[] }>;
}
