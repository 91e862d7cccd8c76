import { createHash } from "node:crypto";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { MAIN_NETWORK, NETWORKS } from "../../api/kernel/networks.ts";
import type { IndexerSettings } from "../settings.ts";
import { type Counting, INDEXES, RAW_TABLE, stepsOf, TABLE_QUERIES, transfersOf } from "./arithmetic.ts";
import { HISTORY_TABLE, type History, type Mark, readHistory, UnfitHistoryError } from "./history.ts";
import { openTransfers } from "./source.ts";
import { HISTORY_RULES, HISTORY_TABLES, type HistoryTable, keyColumns } from "./tables.ts";

const { chainId: CHAIN_ID } = NETWORKS[MAIN_NETWORK];
/** How much memory one sort or hash table may take; a step has a few of them. */
const WORK_MEM = "128MB";

export interface LoadPlan {
  readonly db: pg.Client;
  readonly file: string;
  /** The history's name. An existing one of that name is replaced at the end. */
  readonly schema: string;
  readonly settings: Pick<IndexerSettings, "ownAddresses" | "scope" | "startBlock">;
  /** Called with the finished history before it is put in place; if it throws, everything is undone. */
  readonly accept: (history: History) => Promise<void>;
  readonly tell: (line: string) => void;
}

/**
 * Makes a history from a file of transfers, in one transaction: a run that ends early, for whatever reason, leaves
 * nothing behind.
 * @throws UnfitHistoryError if the file is not as docs/index.md describes, or the history's name belongs to something
 * else.
 */
export async function loadHistory(plan: LoadPlan): Promise<History> {
  const { db, schema } = plan;
  const making = `${schema}_making`;
  await db.query("begin");
  try {
    await expectOwnName(db, schema);
    await db.query(`create schema ${making}; set local search_path to ${making}; set local work_mem = '${WORK_MEM}';
      set local statement_timeout = 0; set local jit = off`);
    await fill(plan);
    await plan.accept({ ...(await readHistory(db, making)), schema });
    await db.query(`drop schema if exists ${schema} cascade; alter schema ${making} rename to ${schema}`);
    await db.query("commit");
    return await readHistory(db, schema);
  } catch (error) {
    await db.query("rollback").catch(() => undefined);
    throw error;
  }
}

/** Drops what is being replaced, with everything in it. */
async function expectOwnName(db: pg.Client, schema: string): Promise<void> {
  const { rows } = await db.query<{ taken: boolean }>(
    "select to_regnamespace($1) is not null and to_regclass($1 || '.history') is null as taken",
    [schema],
  );
  if (rows[0]?.taken)
    throw new UnfitHistoryError(`INDEX_HISTORY is wrong: the schema "${schema}" exists but is not a history`);
}

async function fill({ db, file, settings, tell }: LoadPlan): Promise<void> {
  const timed = async <T>(name: string, work: Promise<T>): Promise<T> => {
    const started = performance.now();
    const result = await work;
    tell(`${name.padEnd(14)} ${((performance.now() - started) / 1000).toFixed(1).padStart(7)} s`);
    return result;
  };
  const content = await timed("read", copyIn(db, file));
  const counting = { ...settings, firstBlock: await timed("check", firstBlockOf(db, settings)) };
  await db.query(HISTORY_TABLE);
  await describeHistory(db, counting, content);
  await timed("transfers", make(db, "transfers", transfersOf(counting)));
  await db.query("update history set transfers = (select count(*) from transfers); drop table raw");
  const steps = stepsOf(counting);
  for (const { name, query } of steps) await timed(name, make(db, name, `create unlogged table ${name} as ${query}`));
  for (const [table, query] of Object.entries(TABLE_QUERIES) as [HistoryTable, string][])
    await timed(table, makeTable(db, table, query));
  await db.query(`drop table ${["transfers", ...steps.map(({ name }) => name)].join()}`);
}

async function make(db: pg.Client, name: string, statement: string): Promise<void> {
  await db.query(statement);
  await db.query(`${INDEXES[name] ?? ""}; analyze ${name}`);
}

/** Sorted by key, so that the copy's index fills quickly and a wallet's rows stay together. */
async function makeTable(db: pg.Client, table: HistoryTable, query: string): Promise<void> {
  const columns = HISTORY_TABLES[table].join();
  await db.query(
    `create table ${table} as select ${columns} from (${query}) rows order by ${keyColumns(table).join()}`,
  );
}

/** Returns a hash of what was copied. */
async function copyIn(db: pg.Client, file: string): Promise<string> {
  const hash = createHash("sha256");
  const hashing = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      done(null, chunk);
    },
  });
  await db.query(RAW_TABLE);
  // Before COPY, which would wait for data, and alongside the pipeline, whose errors this must see.
  const source = openTransfers(file);
  const copy = db.query(copyFrom("copy raw from stdin (format csv, header match)"));
  await pipeline(source, hashing, copy).catch((error: unknown) => {
    if (!(error instanceof pg.DatabaseError)) throw error;
    const details = [error.message, error.detail, error.where].filter(Boolean).join("; ");
    throw new UnfitHistoryError(`${file}: ${details}`);
  });
  return hash.digest("hex");
}

/**
 * Of two transfers in the same place, one would be counted twice; and unless blocks and times are in the same order,
 * days are undefined.
 */
const CONTRADICTION = `select block from (
    select block, min(time) as earliest, max(time) as latest, lag(max(time)) over (order by block) as before from raw group by block) times
  where earliest <> latest or earliest < before order by block limit 1`;

async function firstBlockOf(db: pg.Client, { startBlock }: LoadPlan["settings"]): Promise<number> {
  await db.query("alter table raw add primary key (block, log_index)").catch((error: unknown) => {
    throw new UnfitHistoryError(
      `The file contains a duplicate transfer: ${error instanceof pg.DatabaseError ? error.detail : String(error)}`,
    );
  });
  await db.query("analyze raw");
  const contradiction = await db.query<{ block: string }>(CONTRADICTION);
  if (contradiction.rows[0])
    throw new UnfitHistoryError(
      `The times in the file contradict its block order at block ${contradiction.rows[0].block}`,
    );
  const { rows } = await db.query<{ first: number | null }>(
    "select min(block)::int as first from raw where block >= $1",
    [startBlock ?? 0],
  );
  if (typeof rows[0]?.first !== "number")
    throw new UnfitHistoryError("The file has no transfers at or after START_BLOCK");
  return startBlock ?? rows[0].first;
}

async function describeHistory(db: pg.Client, counting: Counting, content: string): Promise<void> {
  const { scope, firstBlock } = counting;
  const ownAddresses = [...counting.ownAddresses];
  const { rows: marks } = await db.query<Mark>(
    `(select block::int, time::int, lower(transaction) as transaction from raw where block >= $1 order by block, log_index limit 1)
      union all (select block::int, time::int, lower(transaction) from raw order by block desc, log_index desc limit 1)`,
    [firstBlock],
  );
  const lastBlock = marks.at(-1)?.block;
  const all = JSON.stringify([CHAIN_ID, ownAddresses, scope, firstBlock, lastBlock, HISTORY_RULES, content]);
  const id = createHash("sha256").update(all).digest("hex");
  await db.query(
    `insert into history (id, chain_id, own_addresses, scope, first_block, last_block, rules, marks, transfers)
      values ($1, $2, $3, $4, $5, $6, $7, $8, 0)`,
    [id, CHAIN_ID, ownAddresses, scope, firstBlock, lastBlock, HISTORY_RULES, JSON.stringify(marks)],
  );
}
