import { readdirSync } from "node:fs";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { connectChain } from "../../indexer/chain.ts";
import { chooseIndex, nameOf } from "../../indexer/choose-index.ts";
import { expectFit, isFinalOn, readHistory } from "../../indexer/history/history.ts";
import { ROWS_VERSION } from "../../indexer/history/rows.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { generateChain } from "../support/indexer/generated-chain.ts";
import { launchIndexer } from "../support/indexer/launched.ts";
import { serveChain } from "../support/indexer/rpc-server.ts";
import { freshDatabase } from "../support/service/database.ts";
import {
  environment,
  FILE,
  historyRows,
  load,
  type Preload,
  schemasIn,
  settingsOf,
  startPreload,
} from "./preloaded.ts";

/** The chain that the file was made from. */
const CHAIN = generateChain({ transfers: 40, perBlock: 8, endsAt: 1_795_000_000 });
const STRANGER = "0x000000000000000000000000000000000000dEaD";

const folder = await folderForFile("trust-preload-file-");
const databaseUrl = (await freshDatabase()).indexerUrl;
const pool = await forFile(new pg.Pool({ connectionString: databaseUrl, max: 2 }));
const rowsOf = () => historyRows(pool);
const schemas = () => schemasIn(pool);

describe("a history", () => {
  test("It never replaces a schema that is not a history", async () => {
    await pool.query("create schema busy; create table busy.work (n int)");
    await expect(load(databaseUrl, FILE, { INDEX_HISTORY: "busy" })).rejects.toThrow(
      '"busy" exists but is not a history',
    );
    expect((await pool.query("select from busy.work")).rowCount).toBe(0);
    expect(() => settingsOf({ INDEX_HISTORY: "Busy" })).toThrow("INDEX_HISTORY is wrong");
  });

  test("If its loading is killed at the last moment, the previous history is kept, and the next run replaces it", async () => {
    const { id } = await load(databaseUrl, FILE, { START_BLOCK: "2" });
    const before = [await schemas(), await rowsOf()];
    const rpc = await serveChain(CHAIN);
    const env = environment({ DATABASE_URL: databaseUrl, BASE_RPC_URL: rpc.url });
    const reader = await pool.connect();
    await reader.query("begin; select from history.pair");
    const blocked =
      "select pid from pg_stat_activity where wait_event_type = 'Lock' and query like 'drop schema %' and datname = current_database()";
    const waiting = async () => (await pool.query(blocked)).rowCount;
    const terminate = () => pool.query(`select pg_terminate_backend(pid) from (${blocked}) blocked`);
    for (const [end, why] of [
      [({ pid }: Preload) => process.kill(pid, "SIGTERM"), "Ended by SIGTERM. Nothing was changed"],
      [terminate, "PostgreSQL closed the connection"],
    ] as const) {
      const ended = startPreload(FILE, { ...env, TMPDIR: folder });
      await expect.poll(waiting, { timeout: 60_000 }).toBe(1);
      await end(ended);
      expect(await ended.ended).toMatchObject({ code: 1, output: expect.stringContaining(why) });
      expect(readdirSync(folder).filter((name) => name.startsWith("index-preload-"))).toEqual([]);
      await terminate();
      await expect.poll(waiting, { timeout: 60_000 }).toBe(0);
    }
    const killed = startPreload(FILE, env);
    await expect.poll(waiting, { timeout: 60_000 }).toBe(1);
    process.kill(killed.pid, "SIGKILL");
    expect((await killed.ended).code).toBeNull();
    const refused = await startPreload(FILE, env).ended;
    expect(refused).toMatchObject({ code: 1, output: 'Another run is making "history". Wait until it ends\n' });
    expect(await schemas()).toEqual(before[0]);
    await reader.query("rollback");
    reader.release();
    await expect.poll(waiting, { timeout: 60_000 }).toBe(0);
    const again = await startPreload(FILE, env).ended;
    expect(again).toMatchObject({ code: 0, output: expect.stringContaining("history: blocks 1 to 5") });
    expect((await readHistory(pool, "history")).id).not.toBe(id);
    expect(await schemas()).toEqual(before[0]);
    rpc.close();
  });

  test.each([
    ["another scope", { INDEX_SCOPE: "selective" }, "its scope is full, but INDEX_SCOPE is selective"],
    ["another start block", { START_BLOCK: "2" }, "it starts at block 1, but START_BLOCK is 2"],
  ])("It is not taken over by an index with %s", async (_, changed, expected) => {
    const history = await load(databaseUrl, FILE);
    expect(() => expectFit(history, settingsOf())).not.toThrow();
    expect(() => expectFit(history, settingsOf(changed))).toThrow(expected);
  });

  test("It is not taken over with another version of the rows, and START_BLOCK may be omitted", async () => {
    const history = await load(databaseUrl, FILE);
    expect(() => expectFit(history, settingsOf({ START_BLOCK: "" }))).not.toThrow();
    expect(() => expectFit({ ...history, rowsVersion: 0 }, settingsOf())).toThrow(
      `its rows have version 0, but this release has version ${ROWS_VERSION}`,
    );
  });

  test("A history of another chain ends the indexer with the difference", async () => {
    const history = await load(databaseUrl, FILE);
    const other = await serveChain(generateChain({ transfers: 40, perBlock: 8, endsAt: 1_795_000_002 }));
    const env = environment({ DATABASE_URL: databaseUrl, BASE_RPC_URL: other.url });
    const why = isFinalOn(connectChain(other.url), { block: CHAIN.head }, history);
    await expect(why).rejects.toThrow("is not from the node's chain: block 1");
    expect(await launchIndexer(env).ended).toBe(1);
    const { code } = await startPreload(FILE, { ...env, INDEX_HISTORY: "" }).ended;
    expect(code).toBe(1);
    other.close();
  });

  test("It is part of the name of its index, which begins at the history's first block", async () => {
    const history = await load(databaseUrl, FILE, { START_BLOCK: "2" });
    const settings = settingsOf({ START_BLOCK: "" });
    const other = { ...history, id: "another" };
    const choose = (one: typeof history | null) => {
      const { startBlock } = settings;
      const head = { block: 9_000_000, time: Date.now() / 1000 };
      const start = { startBlock, head, history: one };
      return chooseIndex(pool, nameOf(settings, one), start);
    };
    const [none, first, second] = [await choose(null), await choose(history), await choose(other)];
    expect([none.startBlock, first.startBlock]).toEqual([9_000_000 - 3_888_000, 2]);
    expect(new Set([none, first, second].map(({ schema }) => schema)).size).toBe(3);
    expect(await choose(history)).toEqual(first);
    await pool.query("alter table history.wallet_day rename to taken");
    const late = choose({ ...history, id: "later" });
    await expect(late).rejects.toThrow('An index has taken the rows of the history "history"');
  });

  test("It is not taken over by an index that excludes other addresses", async () => {
    const history = await load(databaseUrl, FILE);
    expect(() => expectFit(history, settingsOf())).not.toThrow();
    for (const changed of [{ OWN_ADDRESSES: STRANGER }, { PAY_TO_ADDRESS: STRANGER }])
      expect(() => expectFit(history, settingsOf(changed))).toThrow("it leaves out 0x");
  });

  test("A history that is replaced during a takeover is not mistaken for the previous one", async () => {
    const rpc = await serveChain(CHAIN);
    const { indexerUrl } = await freshDatabase();
    await load(indexerUrl, FILE);
    const launched = launchIndexer(environment({ DATABASE_URL: indexerUrl, BASE_RPC_URL: rpc.url }));
    await launched.untilLogged("ponder started");
    const db = new pg.Client({ connectionString: indexerUrl });
    await db.connect();
    await db.query("update history.history set id = 'made again'");
    await launched.untilLogged("index ready");
    await launched.stop();
    await db.end();
    rpc.close();
    const [first, second] = launched.logged("ponder started").map(({ schema }) => schema);
    expect(first).not.toBe(second);
    expect(launched.logged("index ready")).toEqual([expect.objectContaining({ schema: second })]);
  });

  test("A history that does not exist ends the indexer", async () => {
    await expect(readHistory(pool, "nowhere")).rejects.toThrow('this database has no history "nowhere"');
  });

  test("The indexer waits until the history's last block is final", async () => {
    const head = CHAIN.last + 29;
    const rpc = await serveChain({ ...CHAIN, head });
    const history = await load(databaseUrl, FILE);
    const chain = connectChain(rpc.url);
    expect(await isFinalOn(chain, { block: head }, history)).toBe(false);
    expect(await isFinalOn(chain, { block: head + 1 }, history)).toBe(true);
    rpc.close();
    const shorter = await serveChain({ ...CHAIN, head: CHAIN.last - 1 });
    expect(await isFinalOn(connectChain(shorter.url), { block: CHAIN.last - 1 }, history)).toBe(false);
    shorter.close();
  });
});
