import pg from "pg";
import { connect } from "../../../api/platform/db/connection.ts";
import type { TestDatabase } from "./database.ts";

/** How PostgreSQL executed a statement. */
export interface Executed {
  /** Relations and indexes that were scanned, like `Index Scan payment_todo`. */
  readonly scans: readonly string[];
  /** Pages touched, in cache or not. */
  readonly buffers: number;
}

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Actual Loops": number;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly PlanNode[];
}

/** Explains every statement of `work`, as it is planned for the service: once for all parameters. Changes are undone. */
export async function plansOf(
  { ownerUrl }: TestDatabase,
  work: (pool: pg.Pool) => Promise<unknown>,
): Promise<readonly Executed[]> {
  const asked: pg.QueryConfig[] = [];
  const pool = connect(ownerUrl, 1);
  const query = pool.query.bind(pool) as (config: pg.QueryConfig) => Promise<pg.QueryResult>;
  await pool.query("BEGIN");
  const recorded = (said: pg.QueryConfig | string, values: unknown[] = []) => {
    const config = typeof said === "string" ? { text: said, values } : said;
    asked.push(config);
    return query(config);
  };
  await work(Object.assign(pool, { query: recorded }) as pg.Pool);
  Object.assign(pool, { query });
  await pool.query("ROLLBACK");
  const executed: Executed[] = [];
  for (const config of asked) executed.push(await explained(pool, config));
  await pool.end();
  return executed;
}

async function explained(pool: pg.Pool, { text, values = [] }: pg.QueryConfig): Promise<Executed> {
  const client = await pool.connect();
  try {
    await client.query(`BEGIN; PREPARE explained AS ${text}`);
    const parameters = values.map((value) => pg.escapeLiteral(asText(value))).join(", ");
    const execute = `EXECUTE explained${parameters === "" ? "" : `(${parameters})`}`;
    // The first execution may read what is not cached yet, and clears what is dead in an index.
    await client.query(`SAVEPOINT before; ${execute}; ROLLBACK TO before`);
    const { rows } = await client.query<{ "QUERY PLAN": [{ Plan: PlanNode }] }>(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${execute}`,
    );
    const [found] = rows[0]?.["QUERY PLAN"] ?? [];
    if (found === undefined) throw new Error("nothing was explained");
    const { Plan: plan } = found;
    const buffers = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
    return { scans: scansOf(plan), buffers };
  } finally {
    await client.query("ROLLBACK; DEALLOCATE explained");
    client.release();
  }
}

function asText(value: unknown): string {
  if (Buffer.isBuffer(value)) return `\\x${value.toString("hex")}`;
  if (value instanceof Date) return value.toISOString();
  return Array.isArray(value) ? `{${value.map((one) => JSON.stringify(asText(one))).join()}}` : String(value);
}

function scansOf(node: PlanNode): string[] {
  const what = node["Index Name"] ?? node["Relation Name"];
  const own = what !== undefined && /Scan/.test(node["Node Type"]) ? [`${node["Node Type"]} ${what}`] : [];
  return [...own, ...(node.Plans ?? []).flatMap(scansOf)];
}
