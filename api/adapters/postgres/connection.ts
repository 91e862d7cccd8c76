import pg from "pg";
import type { Transaction } from "../../kernel/transaction.ts";
import type { Hex } from "../../kernel/wallet.ts";
import { type Question, sendOn } from "./message.ts";

/**
 * A request that needs the database is answered within ten seconds: at most one wait for a connection and one for an
 * answer, whatever became of the server. The server gives up first, and never later than the client: a session that nobody
 * talks to any more holds no lock for long.
 */
const CONNECT_WITHIN_MS = 3_000;
const STATEMENT_WITHIN_MS = 5_000;
const ANSWER_WITHIN_MS = 6_000;
const IDLE_IN_TRANSACTION_MS = 10_000;

/** For sessions: each statement is planned once, and the server notices a client that is gone. */
const SESSION = [
  "plan_cache_mode=force_generic_plan",
  "jit=off",
  "tcp_keepalives_idle=10",
  "tcp_keepalives_interval=5",
  "tcp_keepalives_count=3",
];

/**
 * A pool whose statements are planned once: every read is by key, so a generic plan is the right one. Connections that do
 * not answer are given up, and those that nobody has used for ten seconds are closed.
 */
export function connect(connectionString: string, max = 16): pg.Pool {
  const pool = new pg.Pool({
    connectionString,
    max,
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    idleTimeoutMillis: 10_000,
    query_timeout: ANSWER_WITHIN_MS,
    statement_timeout: STATEMENT_WITHIN_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    options: SESSION.map((setting) => `-c ${setting}`).join(" "),
  });
  // A broken idle connection is replaced on next use; without a listener its error would end the process.
  pool.on("error", () => undefined);
  // So would one that breaks while in use: the running statement rejects, and that is enough.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

/** Whether the connection failed, not what was asked on it: what was asked may have taken effect. */
export function isDisconnected(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof pg.DatabaseError) return false;
  const { code } = error as NodeJS.ErrnoException;
  return /^E[A-Z]+$/.test(code ?? "") || DISCONNECTED.test(error.message);
}

/**
 * Whether the database cannot be reached, is stopping or starting, has no room, or gave the statement up (SQLSTATE
 * classes 08, 53 and 57): asking again later may help.
 */
export const isAway = (error: unknown): boolean =>
  isDisconnected(error) || (error instanceof pg.DatabaseError && /^(08|53|57)/.test(error.code ?? ""));

/** What the library says of it, without a code. */
const DISCONNECTED =
  /^(Query read timeout|Connection terminated|timeout exceeded when trying to connect)|not queryable/;

export const bytes = (hex: string): Buffer => Buffer.from(hex.startsWith("0x") ? hex.slice(2) : hex, "hex");
export const hex = (buffer: Buffer): Hex => `0x${buffer.toString("hex")}`;

const COMMIT = { name: "commit", text: "COMMIT" };
const BEGIN: Question<null> = { statement: { name: "begin", text: "BEGIN" }, answer: () => null };

/** For each of the answers, what is asked. */
type Questions<Answers extends readonly unknown[]> = { readonly [At in keyof Answers]: Question<Answers[At]> };

/** Is handed a statement that is sent together with COMMIT. */
type Last = (statement: pg.QueryConfig) => void;

/**
 * Runs `work` in one transaction. If COMMIT fails, it rejects: whether it took effect is unknown.
 * @param first is sent together with BEGIN
 */
export async function inTransaction<T, Answers extends readonly unknown[] = readonly []>(
  pool: pg.Pool,
  work: (client: pg.PoolClient, answers: Answers, last: Last) => Promise<T>,
  first?: Questions<Answers>,
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  let isUsable = false;
  try {
    const questions: readonly Question<unknown>[] = [BEGIN, ...(first ?? [])];
    const results = await sendOn(
      client,
      questions.map(({ statement }) => statement),
    );
    isUsable = true;
    const [, ...answers] = questions.map(({ answer }, at) => answer(results[at] as pg.QueryResult));
    const last: pg.QueryConfig[] = [];
    const result = await work(client, answers as unknown as Answers, (statement) => last.push(statement));
    isUsable = false;
    await sendOn(client, [...last, COMMIT]);
    isUsable = true;
    return result;
  } catch (error) {
    // A connection that does not answer must not be asked again, nor used.
    if (isDisconnected(error) || !isUsable) broken = error as Error;
    else
      await client.query("ROLLBACK").catch((rollback: Error) => {
        broken = rollback;
      });
    throw error;
  } finally {
    client.release(broken);
  }
}

const names = new Map<string, string>();

/** A statement's name, so that a connection parses and plans it once. Texts are few: constants, and some with a number of rows. */
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

/** A transaction of its own, unlike its connection: stores may remember what they have read in it. */
export const transactionOn = (client: pg.PoolClient): Transaction => ({
  query: (text, values) => client.query(named(text, values)),
});
