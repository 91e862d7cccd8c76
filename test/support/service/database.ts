import { randomBytes } from "node:crypto";
import pg from "pg";
import type { Hex } from "viem";
import { inject } from "vitest";
import { connect } from "../../../api/platform/db/connection.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { eventually } from "../eventually.ts";

export interface TestDatabase {
  /** The superuser's URL. */
  readonly ownerUrl: string;
  /** The API's role: exactly what production's API may do. */
  readonly apiUrl: string;
  /** The indexer's role, the same. */
  readonly indexerUrl: string;
}

/** A migrated, empty database for the test file. It is removed with the run's PostgreSQL. */
export const freshDatabase = (): Promise<TestDatabase> =>
  // A third of the time that copying through the write-ahead log takes, which matters only where a crash does.
  createDatabase("template trust strategy file_copy");

/** A database of this kind, with nothing in it by default. */
export async function createDatabase(kind = ""): Promise<TestDatabase> {
  const template = inject("templateDatabase");
  const name = `test_${randomBytes(6).toString("hex")}`;
  await withClient(serverUrl(), async (client) => {
    await client.query(`create database ${name} ${kind}`);
    // A copy has its template's schema, and not the rights on its template.
    await client.query(`grant create on database ${name} to trust_indexer`);
  });
  return {
    ownerUrl: inDatabase(template.ownerUrl, name),
    apiUrl: inDatabase(template.apiUrl, name),
    indexerUrl: inDatabase(template.indexerUrl, name),
  };
}

/** The owner's connection, for inspection. It survives a database that is removed. */
export async function connectOwner({ ownerUrl }: TestDatabase): Promise<pg.Client> {
  const owner = new pg.Client({ connectionString: ownerUrl });
  owner.on("error", () => undefined);
  await owner.connect();
  return owner;
}

/** What the database stores for a hex value, and the reverse. */
export const binary = (hex: string): Buffer => Buffer.from(hex.slice(2), "hex");
export const hexOf = (bytes: Buffer): Hex => `0x${bytes.toString("hex")}`;

/** What so many seconds do by the database's clock: leases end, and what waits is due. */
export async function age({ ownerUrl }: TestDatabase, seconds: number): Promise<void> {
  const by = `interval '${seconds} seconds'`;
  await withClient(ownerUrl, async (client) => {
    await client.query(eachPayment(`lease_until = lease_until - ${by}, next_attempt_at = next_attempt_at - ${by}`));
    await client.query(`UPDATE relay SET tended_at = tended_at - ${by}`);
  });
}

/** The superuser's URL of the run's PostgreSQL, in no test's database. */
const serverUrl = (): string => inDatabase(inject("templateDatabase").ownerUrl, "postgres");

const inDatabase = (url: string, name: string): string => url.replace(/[^/]+$/, name);

/** Rows of a table with this key, and what to make of them; in SQL. */
interface RowChange {
  readonly table: string;
  readonly key: readonly string[];
  readonly set: string;
  readonly where: string;
}

/**
 * A statement that changes rows under running processes, each in a transaction of its own. One that had many rows locked would
 * now and then wait for a process that waits for it, and PostgreSQL would end one of the two.
 */
export const rowByRow = ({ table, key, set, where }: RowChange): string => `DO $$ DECLARE one record; BEGIN
  FOR one IN SELECT ${key.join(", ")} FROM ${table} WHERE ${where} LOOP
    UPDATE ${table} SET ${set} WHERE ${key.map((column) => `${column} = one.${column}`).join(" AND ")} AND ${where};
    COMMIT;
  END LOOP;
END $$`;

export const eachPayment = (set: string, where = "true"): string =>
  rowByRow({ table: "payment", key: ["chain", "asset", "payer", "nonce"], set, where });

const END = `SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity
  WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1`;

/** Ends the one connection that waits for a lock in a statement with this prefix: what it was sent is undone. */
export const endBlocked = ({ ownerUrl }: Pick<TestDatabase, "ownerUrl">, statement: string): Promise<void> =>
  // A client of its own: what a transaction has read of others' activity does not change.
  withClient(ownerUrl, (client) =>
    eventually(async () => (await client.query(END, [`${statement}%`])).rows, [{ ended: true }]),
  );

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

/** What a table takes on disk, its indexes and long values included. */
export async function tableBytes(owner: pg.Client | pg.Pool, table: "payment"): Promise<number> {
  const { rows } = await owner.query<{ bytes: number }>("SELECT pg_total_relation_size($1::regclass)::int AS bytes", [
    table,
  ]);
  return rows[0]?.bytes ?? Number.NaN;
}
