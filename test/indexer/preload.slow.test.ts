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

// A generated chain that grows: its final blocks are fetched (in scope `full`, which is not fetched, written), and preloaded; an index
// takes them over and goes on; and one that reads every block is compared.

/** The newest block when the files are fetched, and the last one that is final then, as Ponder sees it. */
const [FETCHED_AT, LAST_OF_FILES] = [60, 30];
/** The last block with transfers. */
const LAST = 90;
const PLANS = [
  { scope: "full", perBlock: 30, disturb: undefined },
  { scope: "selective", perBlock: 24, disturb: killInTakeOver },
] as const;
/** Seconds on a machine of its own; other work may share it. */
const READY = { timeout: 300_000 };

/** The folder of fetched files. */
let folder: string;
let chain: LiveChain;
let pool: pg.Pool;
let env: Record<string, string>;

/** The plan's chain behind a node, what `npm run index:fetch` makes of it, and an empty database. */
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

/** Once it has read the whole chain. */
async function caughtUp(): Promise<void> {
  const reached = async () => (await pool.query("select block::int from live.position")).rows[0]?.block;
  await expect.poll(reached, READY).toBe(chain.head);
}

/** What work makes of an index of the chain that is ready. One after the other they share Ponder's copy of the chain. */
async function withIndex<T>(
  changed: Record<string, string>,
  { disturb, work }: { disturb?: ((launched: Launched) => Promise<void>) | undefined; work: () => Promise<T> },
): Promise<T & { readonly coverage: readonly object[]; readonly columns: readonly object[] }> {
  const launched = launchIndexer({ ...env, ...changed });
  try {
    await disturb?.(launched);
    await expect.poll(() => launched.said("index ready").length, READY).toBe(1);
    await caughtUp();
    const made = await work();
    const { rows: coverage } = await pool.query("select * from live.coverage");
    return { ...made, coverage, columns: await columnsOf(String(launched.said("index ready")[0]?.schema)) };
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
    [schema, historyTables("selective")],
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

/** The index in a scope that has taken the files over, and then followed the chain: every row and window is that of a recount. */
async function expectTakenOver(scope: Scope, disturb?: (launched: Launched) => Promise<void>): Promise<Rows> {
  const changed = { INDEX_SCOPE: scope };
  const made = await startPreload(folder, { ...env, ...changed }).ended;
  expect(made.said).toContain(`blocks 1 to ${LAST_OF_FILES}.`);
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
  // Of what comes after the files, some is final when the index starts.
  chain.grow(8);
  const continued = await withIndex(changed, { disturb, work: follow });
  expect(continued.columns).toEqual(expect.arrayContaining([...columns]));
  // Its tables are the index's now, and no other index can be made from it.
  expect(await columnsOf("history")).toEqual([]);
  return continued;
}

/** Those with the most transfers, and some with few. */
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
  test.each(PLANS)("equals one that has read every block, and a recount, in $scope scope", async (plan) => {
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
