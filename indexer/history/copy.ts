import { pipeline } from "node:stream/promises";
import type pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { type Extent, TABLE_QUERIES, type WalletRange } from "./arithmetic.ts";
import type { Duck, Result } from "./duck.ts";
import { encodeRows, readAddresses } from "./encode.ts";
import { createTable, HISTORY_TABLES, type HistoryTable, historyTables, keyColumns } from "./tables.ts";

/** Transfers a part is made of: one part's groups, and not all, must fit into memory. */
const TRANSFERS_A_PART = 1_000_000;

/** Wallets by number, in parts of about as many transfers each. */
function partsOf(wallets: number, transfers: number): readonly WalletRange[] {
  const parts = Math.max(1, Math.ceil(transfers / TRANSFERS_A_PART));
  const start = (part: number) => Math.floor(((wallets + 1) * part) / parts);
  return Array.from({ length: parts }, (_, part) => ({ first: start(part), end: start(part + 1) }));
}

interface Copying extends Pick<Extent, "scope"> {
  readonly wallets: number;
  readonly transfers: number;
  /** Called with the part of the work that is done. */
  readonly done: (part: number) => void;
}

/**
 * Makes all tables in the search path, from DuckDB's relations, while the part before is copied. In the transaction of
 * `db`, which no other statement may use meanwhile.
 */
export async function copyTables(
  duck: Duck,
  db: pg.Client,
  { wallets, transfers, scope, done }: Copying,
): Promise<void> {
  const parts = partsOf(wallets, transfers);
  const all = historyTables(scope).flatMap((table) => parts.map((range, part) => ({ table, range, part })));
  const addresses = await readAddresses(duck, wallets);
  let copying: Promise<unknown> = Promise.resolve();
  for (const [index, { table, range, part }] of all.entries()) {
    const copied = copying;
    // A copy that fails ends the loop at its next turn.
    copying.catch(() => undefined);
    const result = await duck.result(TABLE_QUERIES[table]({ ...range, scope }));
    await copied;
    copying = copyPart(db, { table, result, addresses, isFirst: part === 0, isLast: part === parts.length - 1 });
    done((index + 1) / all.length);
  }
  await copying;
}

interface Part {
  readonly table: HistoryTable;
  readonly result: Result;
  readonly addresses: Uint32Array;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** The key comes after the rows, which are in its order. */
async function copyPart(db: pg.Client, { table, result, addresses, isFirst, isLast }: Part): Promise<void> {
  if (isFirst) await db.query(createTable(table));
  const columns = HISTORY_TABLES[table].join();
  const copy = db.query(copyFrom(`copy ${table} (${columns}) from stdin (format binary, freeze)`));
  await pipeline(encodeRows(table, result, addresses), copy);
  if (isLast) await db.query(`alter table ${table} add primary key (${keyColumns(table).join()})`);
}
