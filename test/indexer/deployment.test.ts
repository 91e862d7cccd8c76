import pg from "pg";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { chooseDeployment } from "../../indexer/choose-deployment.ts";
import { clearLock, dropReplaced, isReady, openToReaders } from "../../indexer/deployment.ts";
import { chooseEscrowDeployment } from "../../indexer/escrows/choose-deployment.ts";
import { dropIndexes, isBusy, ponderSchemas } from "../../indexer/schemas.ts";
import { type IndexerSettings, parseSettings } from "../../indexer/settings.ts";
import { freshDatabase } from "../support/service/database.ts";

const HEAD = 41_000_000;
const AT = { head: HEAD, countHolds: async () => 0 };
const pools: pg.Pool[] = [];
let db: pg.Pool;
let reader: pg.Pool;

beforeEach(async () => {
  const { ownerUrl, apiUrl } = await freshDatabase();
  db = new pg.Pool({ connectionString: ownerUrl, max: 2 });
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

/** A schema as a Ponder process leaves it. */
async function fill(schema: string, app: { locked: 0 | 1; heartbeatAt: number; ready?: 0 | 1 }): Promise<void> {
  await db.query(`create schema if not exists ${schema}`);
  await db.query(`create table ${schema}._ponder_meta (key text primary key, value jsonb not null)`);
  const value = { is_locked: app.locked, heartbeat_at: app.heartbeatAt, is_ready: app.ready ?? 1 };
  await db.query(`insert into ${schema}._ponder_meta values ('app', $1)`, [value]);
}

describe("the start block", () => {
  test("is 90 days before the head when the index is first made, and stays there", async () => {
    const first = await chooseDeployment(db, settings(), AT);
    expect(first.startBlock).toBe(HEAD - 3_888_000);
    expect(await chooseDeployment(db, settings(), { ...AT, head: HEAD + 100_000 })).toEqual(first);
  });

  test("is one, though several processes choose it at once, each at another head", async () => {
    const heads = [HEAD, HEAD + 1, HEAD + 2];
    await Promise.allSettled(heads.map((head) => chooseDeployment(db, settings(), { ...AT, head })));
    const { rows } = await db.query("select nspname as schema from pg_namespace where nspname ~ '^live_[0-9a-f]{8}_'");
    expect(rows).toEqual([{ schema: (await chooseDeployment(db, settings(), { ...AT, head: HEAD + 9 })).schema }]);
  });

  test("is not counted back from what a node that still syncs has for its newest block", async () => {
    const syncing = { ...AT, head: 0, isSyncing: async () => true };
    await expect(chooseDeployment(db, settings(), syncing)).rejects.toThrow("still syncs");
    expect((await db.query("select from pg_namespace where nspname ~ '^live_[0-9a-f]{8}_'")).rowCount).toBe(0);
    const begun = await chooseDeployment(db, settings(), AT);
    expect(await chooseDeployment(db, settings(), syncing)).toEqual(begun);
    expect((await chooseDeployment(db, settings({ START_BLOCK: "7" }), { ...syncing, head: 9 })).startBlock).toBe(7);
  });

  test("is the first block of a chain younger than that", async () => {
    expect((await chooseDeployment(db, settings(), { ...AT, head: 3_888_000 })).startBlock).toBe(0);
  });

  test("is the one given, but never above the head, where Ponder would wait forever", async () => {
    expect((await chooseDeployment(db, settings({ START_BLOCK: "40999999" }), AT)).startBlock).toBe(HEAD - 1);
    const above = await chooseDeployment(db, settings({ START_BLOCK: "41000001" }), AT);
    expect(above.startBlock).toBe(HEAD);
    expect(await chooseDeployment(db, settings({ START_BLOCK: "41000001" }), { ...AT, head: HEAD + 5 })).toEqual(above);
  });
});

describe("the schema", () => {
  test.each([{ INDEX_SCOPE: "authorised" }, { START_BLOCK: "7" }, { INDEX_VIEWS_SCHEMA: "staging" }])(
    "is different with %o",
    async (changed) => {
      const [one, other] = [
        await chooseDeployment(db, settings(), AT),
        await chooseDeployment(db, settings(changed), AT),
      ];
      expect(other.schema).not.toBe(one.schema);
    },
  );

  test("does not depend on what changes no row", async () => {
    const node = { POLL_MS: "250", RPC_COPIES: "25", BASE_RPC_URL: "http://other", BASE_WS_URL: "ws://other" };
    const changed = { ...node, OWN_ADDRESSES: "0x00000000000000000000000000000000c0ffee02", EXCLUSIVE: "1" };
    const one = await chooseDeployment(db, settings(), AT);
    expect(await chooseDeployment(db, settings(changed), AT)).toEqual(one);
  });

  test("has a name that Ponder accepts, however long the views' is", async () => {
    const longest = { INDEX_VIEWS_SCHEMA: "a".repeat(24), START_BLOCK: "999999999" };
    expect(
      (await chooseDeployment(db, settings(longest), { ...AT, head: 2_000_000_000 })).schema.length,
    ).toBeLessThanOrEqual(45);
    const escrows = settings({ ...longest, ESCROW_START_BLOCK: "999999999" });
    expect((await chooseEscrowDeployment(db, escrows, 2_000_000_000)).schema.length).toBeLessThanOrEqual(45);
  });
});

describe("an index that the views no longer show", () => {
  const now = Date.now();

  test("is dropped, unless a process holds it or it belongs to other views", async () => {
    const current = { schema: "live_00000001_5", startBlock: 5 };
    await fill(current.schema, { locked: 1, heartbeatAt: now });
    await fill("live_00000002_5", { locked: 0, heartbeatAt: now });
    await fill("live_00000003_5", { locked: 1, heartbeatAt: now - 25_001 });
    await fill("live_00000004_5", { locked: 1, heartbeatAt: now });
    await fill("live_e_00000002_5", { locked: 0, heartbeatAt: 0 });
    await fill("staging_00000002_5", { locked: 0, heartbeatAt: 0 });
    await fill("someone_else", { locked: 0, heartbeatAt: 0 });
    expect(await dropReplaced(db, { prefix: "live", exclusive: false }, current)).toEqual([
      "live_00000002_5",
      "live_00000003_5",
    ]);
    expect(await ponderSchemas(db)).toEqual([
      "live_00000001_5",
      "live_00000004_5",
      "live_e_00000002_5",
      "someone_else",
      "staging_00000002_5",
    ]);
    expect(await dropReplaced(db, { prefix: "live", exclusive: true }, current)).toEqual(["live_00000004_5"]);
    expect(await dropReplaced(db, { prefix: "live_e", exclusive: false }, current)).toEqual(["live_e_00000002_5"]);
  });
});

test("an index in the making is not dropped while its Ponder starts again, but an hour later", async () => {
  const current = { schema: "live_00000001_5", startBlock: 5 };
  await fill(current.schema, { locked: 1, heartbeatAt: Date.now() });
  await fill("live_00000002_5", { locked: 0, heartbeatAt: Date.now() - 60_000, ready: 0 });
  await fill("live_00000003_5", { locked: 0, heartbeatAt: Date.now() - 3_600_001, ready: 0 });
  const plan = { prefix: "live", exclusive: false };
  expect(await dropReplaced(db, plan, current)).toEqual(["live_00000003_5"]);
  expect(await dropReplaced(db, { ...plan, exclusive: true }, current)).toEqual(["live_00000002_5"]);
});

test("an index that a transaction still reads is left, and dropped later", async () => {
  const current = { schema: "live_00000001_5", startBlock: 5 };
  await fill(current.schema, { locked: 1, heartbeatAt: Date.now() });
  await fill("live_00000002_5", { locked: 0, heartbeatAt: 0 });
  const slow = await db.connect();
  await slow.query("begin; select from live_00000002_5._ponder_meta");
  const plan = { prefix: "live", exclusive: false };
  expect(await dropReplaced(db, plan, current)).toEqual([]);
  await slow.query("commit");
  slow.release();
  expect(await dropReplaced(db, plan, current)).toEqual(["live_00000002_5"]);
});

test("all that the indexer made is dropped at once or not at all, also what Ponder has not come to; histories stay", async () => {
  const { schema } = await chooseDeployment(db, settings(), AT);
  const { schema: escrows } = await chooseEscrowDeployment(db, settings(), HEAD);
  await fill("live_00000001_5", { locked: 0, heartbeatAt: 0 });
  await db.query("create schema ponder_sync; create table ponder_sync.blocks (number int8)");
  await db.query("create schema books_00000001_5; create table books_00000001_5.history (id text)");
  const made = ["live_00000001_5", schema, escrows, "ponder_sync"];
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
  const refuse = async () => Promise.reject(new Error("in use"));
  await expect(dropIndexes(db, refuse)).rejects.toThrow("in use");
  expect(await left()).toBe(made.length);
  expect((await dropIndexes(db)).toSorted()).toEqual([...made, "indexer"].toSorted());
  expect([await left(), (await db.query("select from books_00000001_5.history")).rowCount]).toEqual([0, 0]);
});

describe("an index and its lock", () => {
  const deployment = { schema: "live_00000001_5", startBlock: 5 };

  test("is ready when a process that took the lock since the start says so", async () => {
    expect(await isReady(db, deployment, 0)).toBe(false);
    await fill(deployment.schema, { locked: 1, heartbeatAt: 1_000 });
    expect(await isReady(db, deployment, 1_000)).toBe(true);
    expect(await isReady(db, deployment, 1_001)).toBe(false);
    await db.query(`update ${deployment.schema}._ponder_meta set value = value || '{"is_ready": 0}'`);
    expect(await isReady(db, deployment, 0)).toBe(false);
  });

  test("a cleared lock lets the next process in, and nothing else changes", async () => {
    await clearLock(db, deployment);
    await fill(deployment.schema, { locked: 1, heartbeatAt: 1_000 });
    await clearLock(db, deployment);
    const { rows } = await db.query(`select value from ${deployment.schema}._ponder_meta`);
    expect(rows).toEqual([{ value: { is_locked: 0, heartbeat_at: 1_000, is_ready: 1 } }]);
  });

  test("a lock is cleared once a Ponder that has lost its launcher has closed", async () => {
    await fill(deployment.schema, { locked: 1, heartbeatAt: 1_000 });
    const writer = new pg.Client({ ...db.options, application_name: `${deployment.schema}_user` });
    await writer.connect();
    const isLocked = async () => {
      const { rows } = await writer.query(`select value ->> 'is_locked' as it from ${deployment.schema}._ponder_meta`);
      return rows[0]?.it;
    };
    const cleared = clearLock(db, deployment);
    for (let looks = 0; looks < 20; looks += 1) expect(await isLocked()).toBe("1");
    await writer.end();
    await cleared;
    const { rows } = await db.query(`select value ->> 'is_locked' as it from ${deployment.schema}._ponder_meta`);
    expect(rows).toEqual([{ it: "0" }]);
  });
});

test("the API's role reads views that are made again later", async () => {
  await openToReaders(db, "other");
  for (let round = 0; round < 2; round += 1) {
    await db.query("drop view if exists other.answer; create view other.answer as select 42 as value");
    expect((await reader.query("select value from other.answer")).rows).toEqual([{ value: 42 }]);
  }
});
