import pg from "pg";
import { describe, expect, test, vi } from "vitest";
import { prune, refetchPruned } from "../../indexer/prune.ts";
import { startFaultyNode } from "../support/chain/nodes.ts";
import { forFile } from "../support/for-file.ts";
import { generateChain } from "../support/indexer/generated-chain.ts";
import { launchIndexer } from "../support/indexer/launched.ts";
import { serveChain } from "../support/indexer/rpc-server.ts";
import { freshDatabase } from "../support/service/database.ts";
import { environment } from "./preloaded.ts";
import { readTables } from "./score-recount.ts";

// One index of a generated chain. Each test continues from the previous one, most of them after Ponder has ended.

vi.setConfig({ testTimeout: 90_000 });
const KEEP = 100;

const rpc = await forFile(
  serveChain(generateChain({ transfers: 2_000, perBlock: 5, endsAt: Math.floor(Date.now() / 1000) })),
);
const node = await forFile(startFaultyNode({ rpcUrl: rpc.url }));
const { ownerUrl, indexerUrl } = await freshDatabase();
const db = await forFile(new pg.Pool({ connectionString: ownerUrl, max: 3 }));

/** When Ponder first fetches this block, it loses the connection on which it stores it. */
const lost = new Set([150]);
const loseConnection = () =>
  db.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where application_name ^@ 'live_' and datname = current_database() and xact_start is not null
      order by xact_start limit 1`,
  );
/** The blocks that Ponder has requested with their transactions. */
const asked: number[] = [];
node.become(async (call, pass) => {
  const [number, isFull] = call.params ?? [];
  if (call.method === "eth_getBlockByNumber" && isFull === true && number !== "latest") {
    asked.push(Number(number));
    if (lost.delete(Number(number))) await loseConnection();
  }
  return pass(call);
});

const restarts: object[] = [];

/** Runs the indexer until its index is ready. Returns its schema. */
async function runIndexer(more: Readonly<Record<string, string>> = {}): Promise<string> {
  asked.length = 0;
  const env = { BASE_RPC_URL: node.url, DATABASE_URL: indexerUrl, INDEX_SCOPE: "selective", INDEX_HISTORY: "" };
  const launched = await forFile(launchIndexer({ ...environment(env), ...more }));
  await launched.untilLogged("index ready");
  restarts.push(...launched.logged("the indexer stopped and is restarting"));
  await launched.stop();
  return String(launched.logged("ponder started")[0]?.schema);
}

interface Left {
  /** The lowest block of a log, of a transaction, and of a block. */
  readonly lowest: readonly number[];
  readonly rows: readonly number[];
}

/** The rows that Ponder's copy of the chain has from this block on. */
async function left(from = 0): Promise<Left> {
  const tables = [
    ["logs", "block_number"],
    ["transactions", "block_number"],
    ["blocks", "number"],
  ].map(async ([table, number]) => {
    const text = `select min(${number})::int as lowest, count(*)::int as rows from ponder_sync.${table} where ${number} >= $1`;
    return (await db.query(text, [from])).rows[0];
  });
  const found = await Promise.all(tables);
  return { lowest: found.map(({ lowest }) => lowest), rows: found.map(({ rows }) => rows) };
}

const pruneNow = () => prune(db, KEEP);
const schema = await runIndexer();
const rows = await readTables(db);
const { rows: checkpoints } = await db.query(`select finalized_checkpoint as at from ${schema}._ponder_checkpoint`);
const final = Number(checkpoints[0].at.slice(26, 42));

test("A Ponder that loses its connection during a backfill is restarted", () => {
  expect(restarts).toEqual([expect.objectContaining({ code: 75 })]);
  expect(lost.size).toBe(0);
});

describe("needed rows", () => {
  test("A chain shorter than the kept blocks is not pruned", async () => {
    const before = await left();
    expect(before.lowest[0]).toBeLessThan(10);
    expect(await prune(db)).toEqual({ below: 0, rows: 0, slowest: schema, isMore: false });
    expect(await left()).toEqual(before);
  });

  test("Rows for an index that Ponder has not started to fill are not pruned", async () => {
    await db.query("create schema live_0123abcd_7");
    expect(await pruneNow()).toMatchObject({ rows: 0, slowest: "live_0123abcd_7" });
    await db.query("drop schema live_0123abcd_7");
  });

  test("Rows that another Ponder may need are not pruned", async () => {
    await db.query("create schema other; create table other._ponder_meta ()");
    expect(await pruneNow()).toMatchObject({ rows: 0, slowest: "other" });
    await db.query("drop schema other cascade");
  });
});

describe("unneeded rows", () => {
  const below = final - KEEP;

  test("They are deleted, except those that other contracts' logs refer to", async () => {
    await db.query(
      `insert into ponder_sync.logs select (jsonb_populate_record(l, $1)).* from ponder_sync.logs l
        order by l.block_number limit 1`,
      [{ log_index: 999, address: `0x${"e5".repeat(20)}` }],
    );
    const [kept, before] = [await left(below), await left()];
    const pruned = await pruneNow();
    expect(pruned).toEqual({ below, rows: expect.any(Number), slowest: schema, isMore: false });
    const after = await left();
    expect(after.lowest).toEqual(before.lowest);
    expect(after.rows.map((count, table) => count - (kept.rows[table] ?? 0))).toEqual([1, 1, 1]);
    expect(pruned.rows).toBeGreaterThan(300);
    expect(await pruneNow()).toMatchObject({ below, rows: 0 });
  });

  test("They are not requested again by the index that has them", async () => {
    expect(await runIndexer()).toBe(schema);
    expect(asked.filter((number) => number < below)).toEqual([]);
    expect(await readTables(db)).toEqual(rows);
  });

  test("They are fetched again for a new index, which has every row", async () => {
    const other = await runIndexer({ INDEX_VIEWS_SCHEMA: "other" });
    expect(Math.min(...asked)).toBeLessThan(10);
    expect(asked.filter((number) => number > below && number <= final)).toEqual([]);
    await db.query("drop schema live cascade; alter schema other rename to live");
    expect(await readTables(db)).toEqual(rows);
    await db.query(`drop schema live cascade; drop schema ${other} cascade`);
  });

  test("They are pruned again, including rows fetched below the pruned block", async () => {
    expect((await pruneNow()).rows).toBeGreaterThan(300);
    expect(await pruneNow()).toMatchObject({ below, rows: 0 });
  });

  test("All receipts are deleted, because they have no block number", async () => {
    await db.query(
      "insert into ponder_sync.rpc_request_results (request_hash, chain_id, result) values ('a', 8453, '{}')",
    );
    expect(await pruneNow()).toMatchObject({ rows: 1 });
  });
});

describe("Ponder's record of its fetched ranges", () => {
  const ranges = async () =>
    (await db.query("select fragment_id as fragment, blocks::text from ponder_sync.intervals order by 1")).rows;

  const forget = async (needed: number) => {
    const session = await db.connect();
    await refetchPruned(session, { index: "live_0123abcd", schema: "live_0123abcd_1", startBlock: 1 }, needed);
    session.release();
  };

  test.each([
    ["[1,441]", 1, 342, "{[342,441]}"],
    ["[1,441]", 100, 342, "{[1,100],[342,441]}"],
    ["[1,341]", 1, 342, "{}"],
    ["[400,441]", 1, 342, "{[400,441]}"],
  ])(
    "The range %s without %i to %i becomes closed ranges that end one block late",
    async (had, ...[needed, pruned, has]) => {
      const usdc = "log_8453_0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913_0xddf2_null_null_null_0";
      const escrow = `log_8453_0x${"e5".repeat(20)}_0xddf2_null_null_null_0`;
      await db.query("delete from ponder_sync.intervals");
      for (const fragment of [usdc.toLowerCase(), escrow, "log_8453_null_0xddf2_null_null_null_0", "block_8453_1_0"])
        await db.query("insert into ponder_sync.intervals values ($1, 8453, $2)", [fragment, `{${had}}`]);
      await db.query(
        `delete from ponder_sync.logs where address = lower('0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913') and block_number < ${pruned}`,
      );
      await forget(needed);
      const expected = { [escrow]: `{${had}}` };
      for (const { fragment, blocks } of await ranges()) expect(blocks, fragment).toBe(expected[fragment] ?? has);
    },
  );
});
