import { createReadStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { type Extent, TABLE_QUERIES, type WalletRange } from "./arithmetic.ts";
import { type Duck, quote } from "./duck.ts";
import { createTable, HISTORY_TABLES, type HistoryTable, historyTables, keyColumns } from "./tables.ts";

/** Transfers a part is made of: one part's groups, and not all, must fit into memory. */
const TRANSFERS_A_PART = 1_000_000;
const CHUNK_BYTES = 1 << 20;
/** COPY's own text format; no value has a tab, or a backslash but for bytes. */
const FORMAT = "format csv, header false, delimiter '\t', nullstr '\\N', quote '', escape ''";

/** Wallets by number, in parts of about as many transfers each. */
export function partsOf(wallets: number, transfers: number): readonly WalletRange[] {
  const parts = Math.max(1, Math.ceil(transfers / TRANSFERS_A_PART));
  const start = (part: number) => Math.floor(((wallets + 1) * part) / parts);
  return Array.from({ length: parts }, (_, part) => ({ first: start(part), end: start(part + 1) }));
}

interface Copying extends Pick<Extent, "scope"> {
  readonly parts: readonly WalletRange[];
  /** Called with the part of the work that is done. */
  readonly done: (part: number) => void;
}

/**
 * Makes all tables in the search path, from DuckDB's relations, while the part before is copied. In the transaction of
 * `db`, which no other statement may use meanwhile.
 */
export async function copyTables(duck: Duck, db: pg.Client, { parts, scope, done }: Copying): Promise<void> {
  const all = historyTables(scope).flatMap((table) => parts.map((range, part) => ({ table, range, part })));
  let copying: Promise<unknown> = Promise.resolve();
  for (const [index, { table, range, part }] of all.entries()) {
    const file = join(duck.folder, `${table}.${part}.tsv`);
    const query = TABLE_QUERIES[table]({ ...range, scope });
    const copied = copying;
    // A copy that fails ends the loop at its next turn.
    copying.catch(() => undefined);
    await duck.run(`copy (${query}) to ${quote(file)} (${FORMAT})`);
    await copied;
    copying = copyPart(db, table, { file, isFirst: part === 0, isLast: part === parts.length - 1 });
    done((index + 1) / all.length);
  }
  await copying;
}

interface Part {
  readonly file: string;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** The key comes after the rows, which are in its order. */
async function copyPart(db: pg.Client, table: HistoryTable, { file, isFirst, isLast }: Part): Promise<void> {
  if (isFirst) await db.query(createTable(table));
  const columns = HISTORY_TABLES[table].join();
  const rows = createReadStream(file, { highWaterMark: CHUNK_BYTES });
  await pipeline(rows, db.query(copyFrom(`copy ${table} (${columns}) from stdin (freeze)`)));
  await rm(file);
  if (isLast) await db.query(`alter table ${table} add primary key (${keyColumns(table).join()})`);
}
