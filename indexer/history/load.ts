import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { CHAIN_ID } from "../ledger.ts";
import { ROWS_VERSION } from "../rows-version.ts";
import { transaction } from "../schemas.ts";
import type { IndexerSettings } from "../settings.ts";
import { relationsOf, rowsOf, type WalletRange } from "./arithmetic.ts";
import { type Duck, openDuck, quote } from "./duck.ts";
import { HISTORY_TABLE, type History, readHistory, UnfitHistoryError } from "./history.ts";
import { asCsvRows, createTable, HISTORY_TABLES, historyTables, keyColumns } from "./tables.ts";
import { readFiles } from "./transfers.ts";

const TRANSFERS_A_PART = 2_000_000;

export interface LoadPlan {
  readonly db: pg.Client;
  readonly files: readonly string[];
  /** The history's name. An existing one of that name is replaced at the end. */
  readonly schema: string;
  readonly settings: Pick<IndexerSettings, "ownAddresses" | "scope" | "startBlock">;
  /** Throws if the history, whose rows are not made yet, cannot be used. */
  readonly accept: (history: History) => Promise<void>;
  readonly tell: (line: string) => void;
  /** How many transfers' groups are made together: they have to fit into memory. */
  readonly transfersAPart?: number;
}

const sha256 = (value: unknown): string => createHash("sha256").update(JSON.stringify(value)).digest("hex");

/**
 * Makes a history from files of transfers: DuckDB does the arithmetic in a folder under the system's temporary one, and
 * its rows are put in place in one transaction. A run that ends early, for whatever reason, leaves the database as it was.
 * @throws UnfitHistoryError if the files are not as docs/index-history.md describes, or the history's name belongs to
 * something else.
 */
export async function loadHistory(plan: LoadPlan): Promise<History> {
  const { db, schema, tell } = plan;
  const [key, values] = ["hashtextextended($1, 0)", [`history ${schema}`]];
  const { rows } = await db.query<{ free: boolean }>(`select pg_try_advisory_lock(${key}) as free`, values);
  if (rows[0]?.free === false) {
    tell("another run is making this history; waiting for its end");
    await db.query(`select pg_advisory_lock(${key})`, values);
  }
  const { rows: found } = await db.query<{ taken: boolean }>(
    "select to_regnamespace($1) is not null and to_regclass($1 || '.history') is null as taken",
    [schema],
  );
  if (found[0]?.taken)
    throw new UnfitHistoryError(`INDEX_HISTORY is wrong: the schema "${schema}" exists but is not a history`);
  // The folder of a run that was killed has the same name, and is removed.
  const folder = `index-preload-${sha256([db.host, db.port, db.database, schema]).slice(0, 16)}`;
  const duck = await openDuck(join(tmpdir(), folder));
  try {
    const history = await prepare(plan, duck);
    await put(plan, duck, history);
    return await readHistory(db, schema);
  } finally {
    duck.close();
  }
}

/** Reads and checks the files, and makes what the rows are made from. */
async function prepare({ files, schema, settings, accept, tell }: LoadPlan, duck: Duck): Promise<History> {
  tell("reading the files");
  const { hash, firstBlock, marks } = await readFiles(duck, files, settings);
  const { scope, ownAddresses } = settings;
  const facts = {
    ...{ chainId: CHAIN_ID, ownAddresses: ownAddresses.toSorted(), scope },
    ...{ firstBlock, lastBlock: marks[1].block, rowsVersion: ROWS_VERSION },
  };
  const history = { schema, id: sha256([facts, hash]), ...facts, marks };
  await accept({ ...history, transfers: 0 });
  for (const statement of relationsOf({ scope, ownAddresses, firstBlock })) await duck.run(statement);
  const [row] = await duck.rows<{ count: number }>("select count(*)::double as count from transfers");
  return { ...history, transfers: row?.count ?? 0 };
}

async function put(plan: LoadPlan, duck: Duck, { schema, id, ...facts }: History): Promise<void> {
  const { db, tell, transfersAPart = TRANSFERS_A_PART } = plan;
  const making = `${schema}_making`;
  const csv = join(duck.folder, "rows.csv");
  const ranges = walletRanges(facts.transfers / transfersAPart);
  await transaction(db, async () => {
    await db.query(`create schema ${making}; set local search_path to ${making}; set local maintenance_work_mem = '256MB';
      set local max_parallel_maintenance_workers = 0; set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0`);
    await db.query(HISTORY_TABLE);
    await db.query("insert into history (id, facts) values ($1, $2)", [id, facts]);
    for (const table of historyTables(facts.scope)) {
      tell(`making ${table}`);
      await db.query(createTable(table));
      for (const range of ranges) {
        const rows = asCsvRows(table, rowsOf(table, facts.scope, range));
        await duck.run(`copy (${rows}) to ${quote(csv)} (format csv, header false, preserve_order true)`);
        const copy = copyFrom(`copy ${table} (${HISTORY_TABLES[table]}) from stdin (format csv, freeze)`);
        await pipeline(createReadStream(csv), db.query(copy));
      }
      // After the rows, which are in its order.
      await db.query(`alter table ${table} add primary key (${keyColumns(table)})`);
    }
    // An index that takes the former history over has locked this table first, so that neither waits for the other.
    await db.query(
      `do $$ begin lock table ${schema}.history; exception when undefined_table or invalid_schema_name then end $$`,
    );
    await db.query(`drop schema if exists ${schema} cascade; alter schema ${making} rename to ${schema}`);
  });
}

/** Wallets by their first byte, in this number of ranges or the next whole one. */
function walletRanges(wanted: number): readonly WalletRange[] {
  const parts = Math.min(256, Math.max(1, Math.ceil(wanted)));
  const bound = (part: number): string =>
    part === parts
      ? "ff".repeat(21)
      : Math.floor((256 * part) / parts)
          .toString(16)
          .padStart(2, "0");
  return Array.from({ length: parts }, (_, part) => ({ first: bound(part), end: bound(part + 1) }));
}
