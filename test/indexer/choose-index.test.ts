import pg from "pg";
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { chooseIndex, dropIndexes, dropUnlessUsed, nameOf } from "../../indexer/choose-index.ts";
import { endWriters, sessionName, takeLock } from "../../indexer/index-lock.ts";
import { findIndexes, isBusy } from "../../indexer/schemas.ts";
import { type IndexerSettings, parseSettings } from "../../indexer/settings.ts";
import { isAbandoned, isReady, mayBeShown, openToReaders, showIndex } from "../../indexer/views.ts";
import { freshDatabase } from "../support/service/database.ts";

const HEAD = 41_000_000;
const pools: pg.Pool[] = [];
let url: string;
let db: pg.Pool;
let reader: pg.Pool;

beforeEach(async () => {
  const { ownerUrl, apiUrl } = await freshDatabase();
  url = ownerUrl;
  db = new pg.Pool({ connectionString: ownerUrl, max: 3 });
  reader = new pg.Pool({ connectionString: apiUrl, max: 1 });
  pools.push(db, reader);
});
afterAll(() => Promise.all(pools.map((pool) => pool.end())));

function settings(changed: Record<string, string> = {}): IndexerSettings {
  const parsed = parseSettings({
    DATABASE_URL: "postgres://unused/unused",
    BASE_RPC_URL: "http://unused",
    PAY_TO_ADDRESS: "0x00000000000000000000000000000000c0ffee01",
    ...changed,
  });
  if ("problem" in parsed) throw new Error(parsed.problem);
  return parsed;
}

/** The index for these settings on a chain with this head. */
function choose(changed: Record<string, string> = {}, { head = HEAD, ageSeconds = 3_590 } = {}) {
  const wanted = settings(changed);
  const time = Date.now() / 1000 - ageSeconds;
  const start = { startBlock: wanted.startBlock, head: { block: head, time }, history: null };
  return chooseIndex(db, nameOf(wanted, null), start);
}

interface App {
  readonly heartbeatAt?: number;
  readonly ready?: 0 | 1;
  readonly position?: number | null;
}

/** A schema as a Ponder process leaves it, with one table and its progress. */
async function fill(schema: string, { heartbeatAt = 0, ready = 1, position = null }: App = {}) {
  const value = { is_locked: 1, heartbeat_at: heartbeatAt, is_ready: ready };
  await db.query(`create schema ${schema};
    create table ${schema}._ponder_meta (key text primary key, value jsonb not null);
    create table ${schema}.head (block int8); create table ${schema}.position (block int8)`);
  await db.query(`insert into ${schema}._ponder_meta values ('app', $1)`, [value]);
  if (position !== null) await db.query(`insert into ${schema}.position values ($1)`, [position]);
  const end = schema.lastIndexOf("_");
  return { index: schema.slice(0, end), schema, startBlock: Number(schema.slice(end + 1)) };
}

/** Holds another indexer's lock until the test ends. */
async function hold(index: string) {
  const lock = await takeLock(url, index);
  if (lock === null) throw new Error("the lock is taken");
  onTestFinished(lock.release);
  return lock;
}

const schemas = async () => (await findIndexes(db)).map(({ schema }) => schema);

describe("the start block", () => {
  test("It is 90 days before the head when the index is created, and does not change", async () => {
    const first = await choose();
    expect(first.startBlock).toBe(HEAD - 3_888_000);
    expect(await choose({}, { head: HEAD + 100_000 })).toEqual(first);
  });

  test("It is not counted back from the newest block of a node that has not synced", async () => {
    const syncing = { head: 0, ageSeconds: 3_601 };
    await expect(choose({}, syncing)).rejects.toThrow("block, 0, is over an hour old");
    expect(await schemas()).toEqual([]);
    const begun = await choose();
    expect(await choose({}, syncing)).toEqual(begun);
    expect((await choose({ START_BLOCK: "7" }, { ...syncing, head: 9 })).startBlock).toBe(7);
  });

  test("It is the first block of a chain younger than 90 days", async () => {
    expect((await choose({}, { head: 3_888_000 })).startBlock).toBe(0);
  });

  test("It is the configured block, but never above the head, where Ponder would wait forever", async () => {
    expect((await choose({ START_BLOCK: "40999999" })).startBlock).toBe(HEAD - 1);
    const above = await choose({ START_BLOCK: "41000001" });
    expect(above.startBlock).toBe(HEAD);
    expect(await choose({ START_BLOCK: "41000001" }, { head: HEAD + 5 })).toEqual(above);
  });
});

describe("the schema", () => {
  const OTHER = "0x00000000000000000000000000000000c0ffee02";

  test.each([
    { INDEX_SCOPE: "full" },
    { START_BLOCK: "7" },
    { INDEX_VIEWS_SCHEMA: "staging" },
    { OWN_ADDRESSES: OTHER },
    { ESCROW_ADDRESSES: OTHER },
  ])("It is different with %o", async (changed) => {
    expect((await choose(changed)).schema).not.toBe((await choose()).schema);
  });

  test("It is different with another start block of the escrows", async () => {
    const escrow = { ESCROW_ADDRESSES: OTHER };
    expect(await choose({ ...escrow, ESCROW_START_BLOCK: "5" })).not.toEqual(await choose(escrow));
  });

  test("It is the same with settings that change no row", async () => {
    const node = { POLL_MS: "250", RPC_COPIES: "25", BASE_RPC_URL: "http://other" };
    expect(await choose({ ...node, ESCROW_START_BLOCK: "5" })).toEqual(await choose());
  });

  test("Its name is short enough for Ponder with the longest views schema", async () => {
    const longest = { INDEX_VIEWS_SCHEMA: "a".repeat(24), START_BLOCK: "999999999" };
    expect((await choose(longest, { head: 2_000_000_000 })).schema.length).toBeLessThanOrEqual(45);
  });
});

describe("an index and its lock", () => {
  test("One session at a time holds an index until it ends", async () => {
    const first = await hold("live_00000001");
    expect(await takeLock(url, "live_00000001")).toBeNull();
    await hold("live_00000002");
    await first.release();
    expect(first.lost.aborted).toBe(true);
    await hold("live_00000001");
  });

  test("A session that the database terminates has lost the index", async () => {
    const first = await hold("live_00000001");
    await db.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1", [
      sessionName(first.holder),
    ]);
    await expect.poll(() => first.lost.aborted).toBe(true);
    await expect(first.session.query("select 1")).rejects.toThrow();
    await hold("live_00000001");
  });

  test("The next holder ends every connection of the previous holder, and no other", async () => {
    const lock = await hold("live_00000001");
    const names = ["live_00000001_5 0123456789ab", `live_00000001_5 ${lock.holder}`, "live_00000002_5 0123456789ab"];
    const clients = names.map((name) => new pg.Client({ connectionString: url, application_name: name }));
    const ended = new Set<string>();
    for (const [place, client] of clients.entries()) {
      client.on("error", () => ended.add(names[place] ?? ""));
      await client.connect();
    }
    await endWriters(lock, "live_00000001_5");
    await expect.poll(() => [...ended]).toEqual([names[0]]);
    await Promise.all(clients.slice(1).map((client) => client.end()));
  });
});

describe("the views", () => {
  test("They show an index that is ready, to readers with the API's role as well", async () => {
    const index = await fill("live_00000001_5", { heartbeatAt: 1_000, position: 7 });
    expect(await isReady(db, index.schema, 1_000)).toBe(true);
    expect(await isReady(db, index.schema, 1_001)).toBe(false);
    expect(await isReady(db, "live_00000002_5", 0)).toBe(false);
    await openToReaders(db, "live");
    expect(await mayBeShown(db, index, "live")).toBe(true);
    expect(await showIndex(db, index, "live")).toBe(true);
    expect((await reader.query("select block::int from live.position")).rows).toEqual([{ block: 7 }]);
    expect(await showIndex(db, index, "live")).toBe(true);
  });

  test("They switch to another index once it has caught up, in one step that yields to readers", async () => {
    const older = await fill("live_00000001_5", { position: 100 });
    const newer = await fill("live_00000002_5", { position: 94 });
    await openToReaders(db, "live");
    await showIndex(db, older, "live");
    expect(await mayBeShown(db, newer, "live")).toBe(false);
    await db.query("update live_00000002_5.position set block = 95");
    expect(await mayBeShown(db, newer, "live")).toBe(true);
    const slow = await reader.connect();
    await slow.query("begin; select from live.position");
    const change = showIndex(db, newer, "live");
    const blocks = new Set<number>();
    for (let n = 0; n < 50; n += 1) blocks.add((await db.query("select block::int from live.position")).rows[0]?.block);
    expect([...blocks]).toEqual([100]);
    expect(await change).toBe(false);
    await slow.query("commit");
    slow.release();
    expect(await showIndex(db, newer, "live")).toBe(true);
    expect((await reader.query("select block::int from live.position")).rows).toEqual([{ block: 95 }]);
  });

  test("They do not return to an older index while an indexer holds the newer one", async () => {
    const older = await fill("live_00000001_5", { position: 100 });
    const newer = await fill("live_00000002_5", { position: 100 });
    await openToReaders(db, "live");
    await showIndex(db, newer, "live");
    const lock = await hold(newer.index);
    expect(await mayBeShown(db, older, "live")).toBe(false);
    await lock.release();
    expect(await mayBeShown(db, older, "live")).toBe(true);
  });
});

describe("an abandoned index", () => {
  test("It has the same views schema and was not written for an hour", async () => {
    for (const schema of ["live_00000001_5", "staging_00000002_5", "live_e_00000001_5"]) await fill(schema);
    await fill("live_00000004_5", { heartbeatAt: Date.now() - 3_590_000 });
    await fill("live_00000005_5", { heartbeatAt: Date.now() - 3_600_001, ready: 0 });
    const indexes = await findIndexes(db, "live");
    const areAbandoned = await Promise.all(indexes.map(async (one) => [one.schema, await isAbandoned(db, one)]));
    expect(Object.fromEntries(areAbandoned)).toEqual({
      live_00000001_5: true,
      live_00000004_5: false,
      live_00000005_5: true,
    });
  });

  test("It is dropped when no indexer holds it and no transaction reads it", async () => {
    const index = await fill("live_00000001_5");
    const lock = await hold(index.index);
    expect(await dropUnlessUsed(db, index)).toBe(false);
    await lock.release();
    const slow = await db.connect();
    await slow.query("begin; select from live_00000001_5._ponder_meta");
    expect(await dropUnlessUsed(db, index)).toBe(false);
    await slow.query("commit");
    slow.release();
    await expect.poll(() => dropUnlessUsed(db, index)).toBe(true);
    expect(await schemas()).toEqual([]);
  });
});

test("Everything that the indexer made is dropped together or not at all, and histories are kept", async () => {
  const { schema, index } = await choose();
  await fill("live_00000001_5");
  await db.query("create schema ponder_sync; create table ponder_sync.blocks (number int8)");
  await db.query("create schema books_00000001_5; create table books_00000001_5.history (id text)");
  const made = [schema, "live_00000001_5", "ponder_sync"];
  const left = async () => {
    const { rows } = await db.query("select nspname as schema from pg_namespace where nspname = any($1)", [made]);
    return rows.length;
  };
  const slow = await db.connect();
  await slow.query("begin; select from ponder_sync.blocks");
  expect(await dropIndexes(db).catch(isBusy)).toBe(true);
  expect(await left()).toBe(made.length);
  await slow.query("commit");
  slow.release();
  const lock = await hold(index);
  await expect(dropIndexes(db)).rejects.toThrow("Stop it first");
  expect(await left()).toBe(made.length);
  await lock.release();
  expect(await dropIndexes(db)).toEqual(made);
  expect([await left(), (await db.query("select from books_00000001_5.history")).rowCount]).toEqual([0, 0]);
});
