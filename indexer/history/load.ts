import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { LastingError } from "../ledger.ts";
import type { IndexerSettings } from "../settings.ts";
import { type Duck, openDuck, quote } from "./duck.ts";
import { type History, readHistory } from "./history.ts";
import {
  asCsvRows,
  createTable,
  historyTables,
  keyColumns,
  namesOf,
  ROWS_VERSION,
  relationsOf,
  rowsOf,
} from "./rows.ts";
import { readFiles } from "./transfers.ts";

export interface LoadPlan {
  readonly db: pg.Client;
  readonly files: readonly string[];
  /** The history's name. An existing one of that name is replaced at the end. */
  readonly schema: string;
  readonly settings: Pick<IndexerSettings, "ownAddresses" | "scope" | "startBlock">;
}

/**
 * Makes a history from files of transfers. DuckDB computes the rows in a temporary folder, and one transaction writes them. A
 * run that ends early leaves the database unchanged.
 * @throws LastingError if the files do not match docs/index-history.md, or the name belongs to something else
 */
export async function loadHistory({ db, files, schema, settings }: LoadPlan): Promise<History> {
  const { rows } = await db.query<{ free: boolean }>(
    "select pg_try_advisory_lock(hashtextextended('history ' || $1, 0)) as free",
    [schema],
  );
  if (rows[0]?.free === false) throw new LastingError(`Another run is making "${schema}". Wait until it ends`);
  const { rows: found } = await db.query<{ taken: boolean }>(
    "select to_regnamespace($1) is not null and to_regclass($1 || '.history') is null as taken",
    [schema],
  );
  if (found[0]?.taken)
    throw new LastingError(`INDEX_HISTORY is wrong: the schema "${schema}" exists but is not a history`);
  // The folder of a killed run has the same name, so it is removed.
  const place = createHash("sha256").update([db.host, db.port, db.database, schema].join(" ")).digest("hex");
  const duck = await openDuck(join(tmpdir(), `index-preload-${place.slice(0, 16)}`));
  try {
    const { firstBlock, marks } = await readFiles(duck, files, settings);
    const { scope, ownAddresses } = settings;
    const facts = { ownAddresses: ownAddresses.toSorted(), scope, firstBlock, lastBlock: marks[1].block, marks };
    for (const statement of relationsOf({ scope, ownAddresses, firstBlock })) await duck.run(statement);
    await put(db, duck, { schema, id: randomUUID(), ...facts, rowsVersion: ROWS_VERSION });
    return await readHistory(db, schema);
  } finally {
    duck.close();
  }
}

async function put(db: pg.Client, duck: Duck, { schema, id, ...facts }: History): Promise<void> {
  const making = `${schema}_making`;
  const csv = join(duck.folder, "rows.csv");
  await db.query(`begin; create schema ${making}; set local search_path to ${making}; set local maintenance_work_mem = '256MB';
    set local max_parallel_maintenance_workers = 0; set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0`);
  // `facts` is a `History` without its name and id.
  await db.query("create table history (id text primary key, facts jsonb not null, made_at timestamptz default now())");
  await db.query("insert into history (id, facts) values ($1, $2)", [id, facts]);
  for (const table of historyTables(facts.scope)) {
    await db.query(createTable(table));
    for (const rows of rowsOf(table, facts.scope)) {
      await duck.run(
        `copy (${asCsvRows(table, rows)}) to ${quote(csv)} (format csv, header false, preserve_order true)`,
      );
      const copy = copyFrom(`copy ${table} (${namesOf(table)}) from stdin (format csv, freeze)`);
      await pipeline(createReadStream(csv), db.query(copy));
    }
    // Add the key after the rows, which are in its order.
    await db.query(`alter table ${table} add primary key (${keyColumns(table)})`);
  }
  // An index that takes over the previous history locks this table first, so this lock prevents a deadlock.
  await db.query(
    `do $$ begin lock table ${schema}.history; exception when undefined_table or invalid_schema_name then end $$`,
  );
  await db.query(`drop schema if exists ${schema} cascade; alter schema ${making} rename to ${schema}; commit`);
}
