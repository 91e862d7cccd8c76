import { createHash } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { MAIN_NETWORK, NETWORKS } from "../../api/kernel/networks.ts";
import type { IndexerSettings } from "../settings.ts";
import { stepsOf } from "./arithmetic.ts";
import { copyTables } from "./copy.ts";
import { type Duck, openDuck } from "./duck.ts";
import { HISTORY_TABLE, type History, readHistory, UnfitHistoryError } from "./history.ts";
import { type Progress, trackProgress } from "./progress.ts";
import { HISTORY_RULES } from "./tables.ts";
import { type Content, type Counting, countTransfers, readFiles } from "./transfers.ts";

const { chainId: CHAIN_ID } = NETWORKS[MAIN_NETWORK];
const SORT_MEMORY = "256MB";

export interface LoadPlan {
  readonly db: pg.Client;
  readonly files: readonly string[];
  /** The history's name. An existing one of that name is replaced at the end. */
  readonly schema: string;
  readonly settings: Pick<IndexerSettings, "ownAddresses" | "scope" | "startBlock">;
  /** Called with the history before its rows are made; if it throws, there is none. */
  readonly accept: (history: History) => Promise<void>;
  readonly tell: (line: string) => void;
}

/**
 * Makes a history from files of transfers: DuckDB does the arithmetic in a folder under the system's temporary one, and
 * its rows are put in place in one transaction. A run that ends early, for whatever reason, leaves the database as it was.
 * @throws UnfitHistoryError if the files are not as docs/index.md describes, or the history's name belongs to something
 * else.
 */
export async function loadHistory(plan: LoadPlan): Promise<History> {
  const { db, schema } = plan;
  const place = await takePlace(plan);
  await expectOwnName(db, schema);
  const duck = await openDuck(join(tmpdir(), `index-preload-${place}`));
  try {
    const progress = trackProgress(plan.tell);
    const history = await prepare(plan, duck, progress);
    await put(plan, { duck, progress, history });
    return await readHistory(db, schema);
  } finally {
    duck.close();
  }
}

/** One run at a time makes this history. Returns what is this history's alone on this machine. */
async function takePlace({ db, schema, tell }: LoadPlan): Promise<string> {
  const lock = ["hashtextextended($1, 0)", [`history ${schema}`]] as const;
  const { rows } = await db.query<{ free: boolean }>(`select pg_try_advisory_lock(${lock[0]}) as free`, [...lock[1]]);
  if (rows[0]?.free === false) {
    tell("another run is making this history; waiting for its end");
    await db.query(`select pg_advisory_lock(${lock[0]})`, [...lock[1]]);
  }
  const name = JSON.stringify([db.host, db.port, db.database, schema]);
  return createHash("sha256").update(name).digest("hex").slice(0, 16);
}

/** What is to be replaced is dropped, with everything in it. */
async function expectOwnName(db: pg.Client, schema: string): Promise<void> {
  const { rows } = await db.query<{ taken: boolean }>(
    "select to_regnamespace($1) is not null and to_regclass($1 || '.history') is null as taken",
    [schema],
  );
  if (rows[0]?.taken)
    throw new UnfitHistoryError(`INDEX_HISTORY is wrong: the schema "${schema}" exists but is not a history`);
}

/** Reads and checks the files, and counts what the rows are made from. */
async function prepare({ files, schema, settings, accept, tell }: LoadPlan, duck: Duck, { phase, count }: Progress) {
  const content = await phase("read", 0.15, () => readFiles(duck, files, settings));
  for (const [first, last] of content.gaps)
    tell(`no transfer in blocks ${first} to ${last}, a day or more: is a file missing?`);
  const counting = { ...settings, firstBlock: content.firstBlock };
  const history = describeHistory(schema, counting, content);
  await accept(history);
  const transfers = await phase("transfers", 0.1, () => countTransfers(duck, counting));
  count(transfers);
  for (const { name, query } of stepsOf(settings.scope))
    await phase(name, 0.03, () => duck.run(`create table ${name} as ${query}`));
  return { ...history, transfers };
}

function describeHistory(schema: string, counting: Counting, { hash, marks }: Content): History {
  const { scope, firstBlock } = counting;
  const ownAddresses = [...counting.ownAddresses];
  const lastBlock = marks.at(-1)?.block ?? firstBlock;
  const all = JSON.stringify([CHAIN_ID, ownAddresses, scope, firstBlock, lastBlock, HISTORY_RULES, hash]);
  const id = createHash("sha256").update(all).digest("hex");
  return {
    ...{ schema, id, chainId: CHAIN_ID, ownAddresses, scope, firstBlock, lastBlock, rules: HISTORY_RULES, marks },
    transfers: 0,
  };
}

/** An index that takes the former history over has locked this table first (handlers/history.ts), so that neither waits for the other. */
async function lockFormer(db: pg.Client, schema: string): Promise<void> {
  const { rows } = await db.query<{ there: boolean }>("select to_regclass($1 || '.history') is not null as there", [
    schema,
  ]);
  if (rows[0]?.there === true) await db.query(`lock table ${schema}.history`);
}

interface Made {
  readonly duck: Duck;
  readonly progress: Progress;
  readonly history: History;
}

async function put({ db, schema }: LoadPlan, { duck, progress, history }: Made): Promise<void> {
  const making = `${schema}_making`;
  const [row] = await duck.rows<{ count: number }>("select count(*)::double as count from names");
  const wallets = row?.count ?? 0;
  await db.query("begin");
  try {
    await db.query(`create schema ${making}; set local search_path to ${making}; set local maintenance_work_mem = '${SORT_MEMORY}';
      set local max_parallel_maintenance_workers = 0; set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0`);
    await db.query(HISTORY_TABLE);
    await db.query(
      `insert into history (id, chain_id, own_addresses, scope, first_block, last_block, rules, marks, transfers)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      [
        ...[history.id, history.chainId, history.ownAddresses, history.scope, history.firstBlock, history.lastBlock],
        ...[history.rules, JSON.stringify(history.marks), history.transfers],
      ],
    );
    const { scope, transfers } = history;
    await progress.phase("rows", 0.66, (done) => copyTables(duck, db, { wallets, transfers, scope, done }));
    await lockFormer(db, schema);
    await db.query(`drop schema if exists ${schema} cascade; alter schema ${making} rename to ${schema}`);
    await db.query("commit");
  } catch (error) {
    await db.query("rollback").catch(() => undefined);
    throw error;
  }
}
