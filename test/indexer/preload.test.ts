import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { type GeneratedChain, generateChain, SERVICE } from "../../bench/index/generated-chain.ts";
import { serveChain } from "../../bench/index/rpc-server.ts";
import { writeCsv } from "../../bench/index/transfers-csv.ts";
import { HISTORY_TABLES } from "../../indexer/history/tables.ts";
import { type Launched, launchIndexer } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";
import { fetchInto, filesIn } from "./fetched.ts";
import { environment, startPreload } from "./preloaded.ts";
import { type Fact, placeOf } from "./recount.ts";
import { readTables, recountTables } from "./score-recount.ts";

// A generated chain, indexed whole by Ponder, and from the middle on a preloaded history: of a CSV, and of what was fetched.

const chainOf = (transfers: number) =>
  generateChain({ transfers, perBlock: 100, endsAt: Math.floor(Date.now() / 1000) });
const PLANS = [
  { scope: "full", chain: chainOf(4_000), middle: 22, isFetched: false, disturb: undefined },
  { scope: "selective", chain: chainOf(3_000), middle: 16, isFetched: true, disturb: killInTakeOver },
] as const;
/** Seconds on a machine of its own; other work may share it. */
const READY = { timeout: 150_000 };

/** The file, or the folder of files. */
let given: string;
let pool: pg.Pool;
let env: Record<string, string>;

/** The plan's chain behind a node, its first half in files, and an empty database. */
async function prepare({ chain, middle, isFetched }: (typeof PLANS)[number]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "trust-preload-"));
  const rpc = await serveChain(chain);
  given = join(folder, isFetched ? "transfers" : "transfers.csv");
  if (isFetched) await fetchHalf(given, { url: rpc.url, middle });
  else await writeCsv(chain, given, middle);
  const { ownerUrl } = await freshDatabase();
  pool = new pg.Pool({ connectionString: ownerUrl, max: 2 });
  env = environment({ BASE_RPC_URL: rpc.url, DATABASE_URL: ownerUrl });
  onTestFinished(async () => {
    rpc.close();
    await pool.end();
    rmSync(folder, { recursive: true, force: true });
  });
}

/** What `npm run index:fetch` makes of authorized payments, up to the end of the day of a block. */
async function fetchHalf(folder: string, { url, middle }: { url: string; middle: number }): Promise<void> {
  await fetchInto({ folder, urls: [url], startBlock: 1 });
  const isLater = (name: string) => Number(/-(\d+)\.parquet$/.exec(name)?.[1]) > middle;
  for (const name of filesIn(folder).filter(isLater)) rmSync(join(folder, name));
}

type Rows = Readonly<Record<string, readonly object[]>>;

/** Every row of an index of the chain, once it is ready. One after the other they share Ponder's copy of the chain. */
async function rowsOfIndex(
  changed: Record<string, string>,
  disturb?: (launched: Launched) => Promise<void>,
): Promise<Rows> {
  const launched = launchIndexer({ ...env, ...changed });
  try {
    await disturb?.(launched);
    await expect.poll(() => launched.said("index ready").length, READY).toBe(1);
    const { rows: coverage } = await pool.query("select * from live.coverage");
    const columns = await columnsOf(String(launched.said("index ready")[0]?.schema));
    return { ...(await readTables(pool)), coverage, columns };
  } finally {
    launched.letGo();
    await launched.ended;
  }
}

/** The columns of a schema's tables that a history has, and their keys. */
async function columnsOf(schema: string): Promise<readonly object[]> {
  const { rows } = await pool.query(
    `select relname, attname, format_type(atttypid, atttypmod) as type, attnotnull, array_position(indkey::int2[], attnum) as key
      from pg_attribute join pg_class c on c.oid = attrelid left join pg_index on indrelid = c.oid and indisprimary
      where relnamespace = to_regnamespace($1) and attnum > 0 and relname = any($2) order by relname, attnum`,
    [schema, Object.keys(HISTORY_TABLES)],
  );
  return rows;
}

/** Ponder is killed between two tables of the take-over. */
async function killInTakeOver(launched: Launched): Promise<void> {
  const blocker = await pool.connect();
  await blocker.query("begin; lock table history.wallet in access exclusive mode");
  await launched.saying("ponder started");
  const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and query like 'alter table "history"."wallet" set schema%'`;
  await expect.poll(async () => (await pool.query(waits)).rowCount, READY).toBe(1);
  process.kill(launched.ponderPid(), "SIGKILL");
  // Its transaction has the tables until PostgreSQL sees that nobody is there, which is at the next statement.
  await blocker.query("rollback");
  blocker.release();
  await launched.saying("ponder started", 2);
}

/** The same files, taken over in the scope that keeps the least, and a recount of the chain. */
async function expectAuthorised({ chain }: (typeof PLANS)[number]): Promise<void> {
  const scope = { INDEX_SCOPE: "authorised" };
  expect((await startPreload(given, { ...env, ...scope }).ended).code).toBe(0);
  const { coverage, columns, ...rows } = await rowsOfIndex(scope);
  expect(await columnsOf("history")).toEqual([]);
  expect(rows).toEqual(recountTables(factsOf(chain), "authorised"));
}

/** The transfers that count. */
const factsOf = (chain: GeneratedChain): readonly Fact[] =>
  Array.from({ length: chain.last }, (_, n) => n + 1).flatMap((block) =>
    chain.transfersOf(block).flatMap(({ from, to, value, logIndex, ...rest }): readonly Fact[] => {
      const isOurs = [from, to].some((party) => party === SERVICE || BigInt(party) === 0n);
      if (value === 0 || from === to || isOurs) return [];
      const place = placeOf({ blockNumber: BigInt(block), logIndex });
      const parties = { from: from.slice(2), to: to.slice(2), value: BigInt(value) };
      return [{ ...rest, ...parties, place, timestampMs: chain.timeOf(block) * 1000 }];
    }),
  );

describe("an index that takes over a history", { timeout: 240_000 }, () => {
  test.each(PLANS)("equals one that has read every block, in $scope scope", async (plan) => {
    const { scope, middle, isFetched, disturb } = plan;
    await prepare(plan);
    const whole = await rowsOfIndex({ INDEX_SCOPE: scope, INDEX_HISTORY: "" });
    expect(whole.paid?.length).toBeGreaterThan(300);
    const hasSlotTwice = (row: object) => "ordinal" in row && Number(row.ordinal) > 16;
    expect(whole.payer_slot?.some(hasSlotTwice) ?? false).toBe(scope === "selective");
    const made = await startPreload(given, { ...env, INDEX_SCOPE: scope }).ended;
    expect(made.said).toContain(`blocks 1 to ${middle}.`);
    expect(await columnsOf("history")).toEqual(whole.columns);
    const continued = await rowsOfIndex({ INDEX_SCOPE: scope }, disturb);
    // Its tables are the index's now, and no other index can be made from it.
    expect(await columnsOf("history")).toEqual([]);
    for (const [table, rows] of Object.entries(whole)) expect(continued[table], table).toEqual(rows);
    if (isFetched) await expectAuthorised(plan);
  });
});
