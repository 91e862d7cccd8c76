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
  /** The URL of the API's role, with exactly the rights of production. */
  readonly apiUrl: string;
  /** The URL of the indexer's role, with exactly the rights of production. */
  readonly indexerUrl: string;
}

/** A migrated, empty database for the test file. It is removed with the run's PostgreSQL. */
export const freshDatabase = (): Promise<TestDatabase> =>
  // Takes a third of the time of a copy through the write-ahead log, which matters only in a crash.
  createDatabase("template trust strategy file_copy");

/** A database with these creation options, empty by default. */
export async function createDatabase(kind = ""): Promise<TestDatabase> {
  const template = inject("templateDatabase");
  const name = `test_${randomBytes(6).toString("hex")}`;
  await withClient(serverUrl(), async (client) => {
    await client.query(`create database ${name} ${kind}`);
    // A copy has its template's schema, but not the rights on the template.
    await client.query(`grant create on database ${name} to trust_indexer`);
  });
  return {
    ownerUrl: inDatabase(template.ownerUrl, name),
    apiUrl: inDatabase(template.apiUrl, name),
    indexerUrl: inDatabase(template.indexerUrl, name),
  };
}

/** The owner's connection, for inspection. It survives the removal of the database. */
export async function connectOwner({ ownerUrl }: TestDatabase): Promise<pg.Client> {
  const owner = new pg.Client({ connectionString: ownerUrl });
  owner.on("error", () => undefined);
  await owner.connect();
  return owner;
}

/** The stored bytes of a hex value, and the reverse. */
export const binary = (hex: string): Buffer => Buffer.from(hex.slice(2), "hex");
export const hexOf = (bytes: Buffer): Hex => `0x${bytes.toString("hex")}`;

/** Ages rows by these seconds, so that leases end and waiting work is due. */
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

/** The rows of a table to change, with their key, in SQL. */
interface RowChange {
  readonly table: string;
  readonly key: readonly string[];
  readonly set: string;
  readonly where: string;
}

/**
 * A statement that changes rows under running processes, each in a separate transaction. With many locked rows it would
 * sometimes deadlock with a process.
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

/** Terminates the one connection that waits for a lock in a statement with this prefix. Its transaction is undone. */
export const endBlocked = ({ ownerUrl }: Pick<TestDatabase, "ownerUrl">, statement: string): Promise<void> =>
  // Uses a separate client, because a transaction reads other sessions' activity only once.
  withClient(ownerUrl, (client) =>
    eventually(async () => (await client.query(END, [`${statement}%`])).rows, [{ ended: true }]),
  );

/** PostgreSQL's execution of a statement. */
export interface Executed {
  /** Scanned relations and indexes, like `Index Scan payment_todo`. */
  readonly scans: readonly string[];
  /** Pages read, cached or not. */
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

/** Explains every statement of `work` as the service plans it: once for all parameters. Changes are undone. */
export async function plansOf(
  { ownerUrl }: TestDatabase,
  work: (pool: pg.Pool) => Promise<unknown>,
): Promise<readonly Executed[]> {
  const asked: pg.QueryConfig[] = [];
  const pool = connect(ownerUrl, 1);
  const query = pool.query.bind(pool) as (config: pg.QueryConfig) => Promise<pg.QueryResult>;
  await pool.query("BEGIN");
  const recorded = (statement: pg.QueryConfig | string, values: unknown[] = []) => {
    const config = typeof statement === "string" ? { text: statement, values } : statement;
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
    // The first execution may read uncached pages, and it removes dead entries from an index.
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

/** The size of a table on disk, with its indexes and long values. */
export async function tableBytes(owner: pg.Client | pg.Pool, table: "payment"): Promise<number> {
  const { rows } = await owner.query<{ bytes: number }>("SELECT pg_total_relation_size($1::regclass)::int AS bytes", [
    table,
  ]);
  return rows[0]?.bytes ?? Number.NaN;
}
