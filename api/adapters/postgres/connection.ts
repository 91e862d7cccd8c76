import pg from "pg";
import type { Hex } from "../../kernel/wallet.ts";

/** A pool whose statements are planned once: every read goes by key, so a generic plan is the right one. */
export function connect(connectionString: string, max = 16): pg.Pool {
  const pool = new pg.Pool({
    connectionString,
    max,
    connectionTimeoutMillis: 5_000,
    options: "-c plan_cache_mode=force_generic_plan -c jit=off",
  });
  // An idle connection that breaks is replaced on next use; without a listener it would end the process.
  pool.on("error", () => undefined);
  // So would one that breaks while it is lent out: the statement under way rejects, which says it all.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

export const bytes = (hex: string): Buffer => Buffer.from(hex.startsWith("0x") ? hex.slice(2) : hex, "hex");
export const hex = (buffer: Buffer): Hex => `0x${buffer.toString("hex")}`;

/**
 * Runs `work` in one transaction. A failed COMMIT rejects: whether it took effect is then unknown.
 * @param first statements without parameters that go out together with BEGIN; `work` gets what each of them answered
 */
export async function inTransaction<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient, answered: readonly pg.QueryResult[]) => Promise<T>,
  first: readonly string[] = [],
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    // Of several statements pg makes a list of results, which its types do not say.
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
