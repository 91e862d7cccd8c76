import pg from "pg";
import type { Transaction } from "../../kernel/transaction.ts";
import type { Hex } from "../../kernel/wallet.ts";

/** A pool whose statements are planned once: every read is by key, so a generic plan is the right one. */
export function connect(connectionString: string, max = 16): pg.Pool {
  const pool = new pg.Pool({
    connectionString,
    max,
    connectionTimeoutMillis: 5_000,
    options: "-c plan_cache_mode=force_generic_plan -c jit=off",
  });
  // A broken idle connection is replaced on next use; without a listener its error would end the process.
  pool.on("error", () => undefined);
  // So would one that breaks while in use: the running statement rejects, and that is enough.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

export const bytes = (hex: string): Buffer => Buffer.from(hex.startsWith("0x") ? hex.slice(2) : hex, "hex");
export const hex = (buffer: Buffer): Hex => `0x${buffer.toString("hex")}`;

/**
 * Runs `work` in one transaction. If COMMIT fails, it rejects: whether it took effect is unknown.
 * @param first statements without parameters, sent together with BEGIN; `work` receives their results
 */
export async function inTransaction<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient, answered: readonly pg.QueryResult[]) => Promise<T>,
  first: readonly string[] = [],
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    // For several statements pg returns a list of results, which its types do not show.
    const [, ...answered] = [await client.query(["BEGIN", ...first].join("; "))].flat() as pg.QueryResult[];
    const result = await work(client, answered);
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch((rollback: Error) => {
      broken = rollback;
    });
    throw error;
  } finally {
    client.release(broken);
  }
}

const names = new Map<string, string>();

/** A statement's name, so that a connection parses and plans it once. Texts are constants, hence few. */
function nameOf(text: string): string {
  const name = names.get(text) ?? `t${names.size}`;
  names.set(text, name);
  return name;
}

/** A transaction of its own, unlike its connection: stores may remember what they have read in it. */
export const transactionOn = (client: pg.PoolClient): Transaction => ({
  query: (text, values) => client.query({ name: nameOf(text), text, values: [...values] }),
});
