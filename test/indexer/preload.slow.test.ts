import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import type { Address } from "viem";
import { describe, expect, onTestFinished, test } from "vitest";
import { createActivityIndex } from "../../api/platform/index/activity.ts";
import { historyTables } from "../../indexer/history/rows.ts";
import type { Scope } from "../../indexer/ledger.ts";
import { SERVICE, writeCsv } from "../support/indexer/generated-chain.ts";
import { type Launched, launchIndexer } from "../support/indexer/launched.ts";
import { generateLiveChain, type LiveChain, serveChain } from "../support/indexer/rpc-server.ts";
import { freshDatabase } from "../support/service/database.ts";
import { fetchInto, filesIn } from "./fetched.ts";
import { DAY_MS, expectActivity, expectReadings } from "./indexed.ts";
import { environment, startPreload } from "./preloaded.ts";
import { type Fact, placeOf } from "./recount.ts";
import { readTables, recountTables } from "./score-recount.ts";

// A generated chain that grows. Its final blocks are fetched (or written, in scope `full`, which has no fetch) and
// preloaded. An index takes them over and continues, and is compared with an index that reads every block.

/** The newest block when the files are fetched, and the last one that Ponder then considers final. */
const [FETCHED_AT, LAST_OF_FILES] = [60, 30];
/** The last block with transfers. */
const LAST = 90;
const PLANS = [
  { scope: "full", perBlock: 30, disturb: undefined },
  { scope: "selective", perBlock: 24, disturb: killInTakeOver },
] as const;
/** Takes seconds on an idle machine, but other work may share it. */
const READY = { timeout: 300_000 };

/** The folder of fetched files. */
let folder: string;
let chain: LiveChain;
let pool: pg.Pool;
let env: Record<string, string>;

/** Prepares the plan's chain behind a node, the files of `npm run index:fetch`, and an empty database. */
async function prepare({ scope, perBlock }: (typeof PLANS)[number]): Promise<void> {
  const endsAt = Math.floor(Date.now() / 1000);
  chain = generateLiveChain({ transfers: LAST * perBlock, perBlock, endsAt }, FETCHED_AT);
  const parent = mkdtempSync(join(tmpdir(), "trust-preload-"));
  folder = join(parent, "transfers");
  const rpc = await serveChain(chain);
  if (scope === "selective") {
    await fetchInto({ folder, urls: [rpc.url], startBlock: 1 });
    expect(filesIn(folder).length).toBeGreaterThan(10);
  } else {
    mkdirSync(folder);
    await writeCsv(chain, join(folder, "transfers.csv"), LAST_OF_FILES);
  }
  const { ownerUrl, indexerUrl } = await freshDatabase();
  pool = new pg.Pool({ connectionString: ownerUrl, max: 2 });
  env = environment({ BASE_RPC_URL: rpc.url, DATABASE_URL: indexerUrl });
  onTestFinished(async () => {
    rpc.close();
    await pool.end();
    rmSync(parent, { recursive: true, force: true });
  });
}

type Rows = Readonly<Record<string, readonly object[]>>;

/** Waits until the index has read the whole chain. */
async function caughtUp(): Promise<void> {
  const reached = async () => (await pool.query("select block::int from live.position")).rows[0]?.block;
  await expect.poll(reached, READY).toBe(chain.head);
}

/** Runs `work` with a ready index of the chain. Indexes that run one after another share Ponder's copy of the chain. */
async function withIndex<T>(
  changed: Record<string, string>,
  { disturb, work }: { disturb?: ((launched: Launched) => Promise<void>) | undefined; work: () => Promise<T> },
): Promise<T & { readonly coverage: readonly object[]; readonly columns: readonly object[] }> {
  const launched = launchIndexer({ ...env, ...changed });
  try {
    await disturb?.(launched);
    await expect.poll(() => launched.logged("index ready").length, READY).toBe(1);
    await caughtUp();
    const made = await work();
    const { rows: coverage } = await pool.query("select * from live.coverage");
    return { ...made, coverage, columns: await columnsOf(String(launched.logged("index ready")[0]?.schema)) };
  } finally {
    launched.closeInput();
    await launched.ended;
  }
}

/** The columns and keys of a schema's history tables. */
async function columnsOf(schema: string): Promise<readonly object[]> {
  const { rows } = await pool.query(
    `select relname, attname, format_type(atttypid, atttypmod) as type, attnotnull, array_position(indkey::int2[], attnum) as key
      from pg_attribute join pg_class c on c.oid = attrelid left join pg_index on indrelid = c.oid and indisprimary
      where relnamespace = to_regnamespace($1) and attnum > 0 and relname = any($2) order by relname, attnum`,
    [schema, historyTables("selective")],
  );
  return rows;
}

/** Kills Ponder between two tables of the takeover. */
async function killInTakeOver(launched: Launched): Promise<void> {
  const blocker = await pool.connect();
  await blocker.query("begin; lock table history.wallet in access exclusive mode");
  await launched.untilLogged("ponder started");
  const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and query like 'alter table "history"."wallet" set schema%'`;
  await expect.poll(async () => (await pool.query(waits)).rowCount, READY).toBe(1);
  process.kill(launched.ponderPid(), "SIGKILL");
  // Its transaction holds the tables until PostgreSQL notices the closed connection at the next statement.
  await blocker.query("rollback");
  blocker.release();
  await launched.untilLogged("ponder started", 2);
}

/** Takes the files over in this scope and follows the chain. Expects every row and window to equal a recount. */
async function expectTakenOver(scope: Scope, disturb?: (launched: Launched) => Promise<void>): Promise<Rows> {
  const changed = { INDEX_SCOPE: scope };
  const made = await startPreload(folder, { ...env, ...changed }).ended;
  expect(made.output).toContain(`blocks 1 to ${LAST_OF_FILES}.`);
  const columns = await columnsOf("history");
  const index = createActivityIndex(pool, { viewsSchema: "live", maxLagMs: Number.POSITIVE_INFINITY });
  const follow = async () => {
    for (const blocks of [3, 4]) {
      chain.grow(blocks);
      await caughtUp();
    }
    const facts = factsOf(chain);
    const rows = await readTables(pool);
    expect(rows, scope).toEqual(recountTables(facts, scope));
    const [now, wallets] = [new Date(chain.timeOf(chain.head) * 1000), busiest(facts)];
    await expectReadings({ pool, scope }, facts, { wallets, head: chain.head, now });
    for (const days of [0, 40, 89, 90])
      await expectActivity({ index, scope }, facts, { wallets, now: new Date(now.getTime() + days * DAY_MS) });
    return rows;
  };
  // Some of the blocks after the files are final when the index starts.
  chain.grow(8);
  const continued = await withIndex(changed, { disturb, work: follow });
  expect(continued.columns).toEqual(expect.arrayContaining([...columns]));
  // The tables belong to the index now, so no other index can be made from the history.
  expect(await columnsOf("history")).toEqual([]);
  return continued;
}

/** The wallets with the most transfers, and some with few. */
function busiest(facts: readonly Fact[]): readonly Address[] {
  const counts = [
    ...Map.groupBy(
      facts.flatMap(({ from, to }) => [from, to]),
      (wallet) => wallet,
    ),
  ].toSorted(([, a], [, b]) => b.length - a.length);
  return counts.flatMap(([wallet], place): readonly Address[] =>
    place < 12 || place % 40 === 0 ? [`0x${wallet}`] : [],
  );
}

/** The transfers that count. */
const factsOf = (chain: LiveChain): readonly Fact[] =>
  Array.from({ length: chain.head }, (_, n) => n + 1).flatMap((block) =>
    chain.transfersOf(block).flatMap(({ from, to, value, logIndex, ...rest }): readonly Fact[] => {
      const isOurs = [from, to].some((party) => party === SERVICE || BigInt(party) === 0n);
      if (value === 0 || from === to || isOurs) return [];
      const place = placeOf({ blockNumber: BigInt(block), logIndex });
      const parties = { from: from.slice(2), to: to.slice(2), value: BigInt(value) };
      return [{ ...rest, ...parties, place, timestampMs: chain.timeOf(block) * 1000 }];
    }),
  );

describe("an index that takes over a history", { timeout: 400_000 }, () => {
  test.each(PLANS)("In $scope scope it equals a recount and an index that has read every block", async (plan) => {
    const { scope, disturb } = plan;
    await prepare(plan);
    const continued = await expectTakenOver(scope, disturb);
    const whole = await withIndex({ INDEX_SCOPE: scope, INDEX_HISTORY: "" }, { work: () => readTables(pool) });
    expect(whole.paid?.length).toBeGreaterThan(300);
    const hasSlotTwice = (row: object) => "ordinal" in row && Number(row.ordinal) > 16;
    expect(whole.payer_slot?.some(hasSlotTwice) ?? false).toBe(scope === "selective");
    for (const [table, rows] of Object.entries(whole)) expect(continued[table], table).toEqual(rows);
  });
});
