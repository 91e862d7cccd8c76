import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { MAIN_NETWORK, NETWORKS } from "../../api/platform/networks.ts";
import { ROWS_VERSION } from "../rows-version.ts";
import type { IndexerSettings } from "../settings.ts";
import { type Counting, relationsOf, rowsOf, type WalletRange } from "./arithmetic.ts";
import { type Duck, openDuck, quote } from "./duck.ts";
import { HISTORY_TABLE, type History, readHistory, UnfitHistoryError } from "./history.ts";
import { asCsvRows, createTable, HISTORY_TABLES, historyTables, keyColumns } from "./tables.ts";
import { type Content, readFiles } from "./transfers.ts";

const { chainId: CHAIN_ID } = NETWORKS[MAIN_NETWORK];
const SORT_MEMORY = "256MB";
const TRANSFERS_A_PART = 2_000_000;

export interface LoadPlan {
  readonly db: pg.Client;
  readonly files: readonly string[];
  /** The history's name. An existing one of that name is replaced at the end. */
  readonly schema: string;
  readonly settings: Pick<IndexerSettings, "ownAddresses" | "scope" | "startBlock">;
  /** Called with the history before its rows are made; if it throws, there is none. */
  readonly accept: (history: History) => Promise<void>;
  readonly tell: (line: string) => void;
  /** How many transfers' groups are made together: only they, and not all, have to fit into memory. */
  readonly transfersAPart?: number;
}

/**
 * Makes a history from files of transfers: DuckDB does the arithmetic in a folder under the system's temporary one, and
 * its rows are put in place in one transaction. A run that ends early, for whatever reason, leaves the database as it was.
 * @throws UnfitHistoryError if the files are not as docs/index-history.md describes, or the history's name belongs to
 * something else.
 */
export async function loadHistory(plan: LoadPlan): Promise<History> {
  const { db, schema } = plan;
  await lockName(plan);
  await expectOwnName(db, schema);
  const place = createHash("sha256")
    .update(JSON.stringify([db.host, db.port, db.database, schema]))
    .digest("hex");
  // The folder of a run that was killed has the same name, and is removed.
  const duck = await openDuck(join(tmpdir(), `index-preload-${place.slice(0, 16)}`));
  try {
    const history = await prepare(plan, duck);
    await put(plan, duck, history);
    return await readHistory(db, schema);
  } finally {
    duck.close();
  }
}

/** One run at a time makes this history. */
async function lockName({ db, schema, tell }: LoadPlan): Promise<void> {
  const [key, values] = ["hashtextextended($1, 0)", [`history ${schema}`]];
  const { rows } = await db.query<{ free: boolean }>(`select pg_try_advisory_lock(${key}) as free`, values);
  if (rows[0]?.free !== false) return;
  tell("another run is making this history; waiting for its end");
  await db.query(`select pg_advisory_lock(${key})`, values);
}

/** A history of this name is dropped at the end, with everything in its schema. */
async function expectOwnName(db: pg.Client, schema: string): Promise<void> {
  const { rows } = await db.query<{ taken: boolean }>(
    "select to_regnamespace($1) is not null and to_regclass($1 || '.history') is null as taken",
    [schema],
  );
  if (rows[0]?.taken)
    throw new UnfitHistoryError(`INDEX_HISTORY is wrong: the schema "${schema}" exists but is not a history`);
}

async function timed<T>({ tell }: LoadPlan, name: string, work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  const result = await work();
  tell(`${name.padEnd(14)} ${((performance.now() - started) / 1_000).toFixed(1)} s`);
  return result;
}

/** Reads and checks the files, and makes what the rows are made from. */
async function prepare(plan: LoadPlan, duck: Duck): Promise<History> {
  const { files, schema, settings, accept } = plan;
  const content = await timed(plan, "read", () => readFiles(duck, files, settings));
  const counting = { ...settings, firstBlock: content.firstBlock };
  const history = describeHistory(schema, counting, content);
  await accept(history);
  for (const { name, statement } of relationsOf(counting)) await timed(plan, name, () => duck.run(statement));
  const [row] = await duck.rows<{ count: number }>("select count(*)::double as count from transfers");
  return { ...history, transfers: row?.count ?? 0 };
}

function describeHistory(schema: string, { scope, firstBlock, ownAddresses }: Counting, content: Content): History {
  const { hash, marks } = content;
  const facts = {
    chainId: CHAIN_ID,
    ownAddresses,
    scope,
    firstBlock,
    lastBlock: marks[1].block,
    rowsVersion: ROWS_VERSION,
  };
  const id = createHash("sha256")
    .update(JSON.stringify([facts, hash]))
    .digest("hex");
  return { schema, id, ...facts, marks, transfers: 0 };
}

async function put(plan: LoadPlan, duck: Duck, history: History): Promise<void> {
  const { db, schema } = plan;
  const making = `${schema}_making`;
  await db.query("begin");
  try {
    await db.query(`create schema ${making}; set local search_path to ${making}; set local maintenance_work_mem = '${SORT_MEMORY}';
      set local max_parallel_maintenance_workers = 0; set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0`);
    await db.query(HISTORY_TABLE);
    await db.query(
      `insert into history (id, chain_id, own_addresses, scope, first_block, last_block, rows_version, marks, transfers)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      [
        ...[history.id, history.chainId, history.ownAddresses, history.scope, history.firstBlock, history.lastBlock],
        ...[history.rowsVersion, JSON.stringify(history.marks), history.transfers],
      ],
    );
    await copyTables(plan, duck, history);
    // An index that takes the former history over has locked this table first, so that neither waits for the other.
    await db.query(
      `do $$ begin lock table ${schema}.history; exception when undefined_table or invalid_schema_name then end $$`,
    );
    await db.query(`drop schema if exists ${schema} cascade; alter schema ${making} rename to ${schema}`);
    await db.query("commit");
  } catch (error) {
    await db.query("rollback").catch(() => undefined);
    throw error;
  }
}

/** Makes all tables in the search path, each by its first bytes of wallets in turn. A key comes after the rows, which are in its order. */
async function copyTables(plan: LoadPlan, duck: Duck, { scope, transfers }: History): Promise<void> {
  const file = join(duck.folder, "rows.csv");
  const ranges = walletRanges(transfers / (plan.transfersAPart ?? TRANSFERS_A_PART));
  for (const table of historyTables(scope))
    await timed(plan, table, async () => {
      await plan.db.query(createTable(table));
      for (const range of ranges) {
        await duck.run(
          `copy (${asCsvRows(table, rowsOf(table, scope, range))}) to ${quote(file)} (format csv, header false, preserve_order true)`,
        );
        const copy = copyFrom(`copy ${table} (${HISTORY_TABLES[table]}) from stdin (format csv, freeze)`);
        await pipeline(createReadStream(file), plan.db.query(copy));
      }
      await plan.db.query(`alter table ${table} add primary key (${keyColumns(table)})`);
    });
}

const FIRST_BYTES = 256;
const ADDRESS_BYTES = 20;

/** Wallets by their first byte, in this number of ranges or the next whole one. */
function walletRanges(wanted: number): readonly WalletRange[] {
  const parts = Math.min(FIRST_BYTES, Math.max(1, Math.ceil(wanted)));
  const bound = (part: number): string => {
    const first = Math.floor((FIRST_BYTES * part) / parts);
    return first === FIRST_BYTES ? "ff".repeat(ADDRESS_BYTES + 1) : first.toString(16).padStart(2, "0");
  };
  return Array.from({ length: parts }, (_, part) => ({ first: bound(part), end: bound(part + 1) }));
}
