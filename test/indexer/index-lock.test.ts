import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { keepLockAlone } from "../../indexer/index-lock.ts";
import { OWN_ADDRESS_TABLE } from "../../indexer/own-address-table.ts";
import { withClient } from "../../scripts/embedded/postgres.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { forFile } from "../support/for-file.ts";
import { launchIndexerOf } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";

// Two Ponders that ask for one index's lock, in Ponder's words.

const META = '"live_x"."_ponder_meta"';
const LOOK = `select "value" from ${META} where ${META}."key" = $1`;
const TAKE = `update ${META} set "value" = $1`;
const GIVE_BACK = `update ${META} set "value" = jsonb_set(value, '{is_locked}', to_jsonb(0))`;
const end = vi.fn();
const { query } = pg.Client.prototype;
const database = await freshDatabase();
const db = await forFile(new pg.Pool({ connectionString: database.ownerUrl, max: 3 }));

beforeAll(async () => {
  await db.query(`create schema live_x; create table ${META} (key text primary key, value jsonb);
    insert into ${META} values ('app', '{"is_locked": 0}'); set search_path to live_x; ${OWN_ADDRESS_TABLE}`);
  keepLockAlone({ schema: "live_x", own: "" }, end);
});
afterAll(() => {
  pg.Client.prototype.query = query;
});

const isLocked = async (on: Pick<pg.Client, "query">) => {
  const { rows } = await on.query({ text: LOOK, values: ["app"] });
  return rows[0]?.value.is_locked;
};

test("one that has not got the lock does not give it back", async () => {
  await db.query(`update ${META} set value = '{"is_locked": 1}'`);
  await db.query({ text: GIVE_BACK });
  expect(await isLocked(db)).toBe(1);
});

test("of two that look at the same moment the second sees what the first has taken, which that gives back", async () => {
  await db.query(`update ${META} set value = '{"is_locked": 0}'`);
  const [one, two] = [await db.connect(), await db.connect()];
  await one.query("begin");
  expect(await isLocked(one)).toBe(0);
  await two.query("begin");
  const second = isLocked(two);
  await one.query({ text: TAKE, values: [{ is_locked: 1 }] });
  await one.query("commit");
  expect(await second).toBe(1);
  await two.query("rollback");
  await one.query({ text: GIVE_BACK });
  expect(await isLocked(two)).toBe(0);
  one.release();
  two.release();
  expect(end).not.toHaveBeenCalled();
});

test("one that was told of other addresses than the index leaves out by now ends as it takes the lock", async () => {
  await db.query("insert into live_x.own_address values ('0x01', 7, null)");
  const one = await db.connect();
  await one.query("begin");
  await one.query({ text: TAKE, values: [{ is_locked: 1 }] });
  expect(end).toHaveBeenCalledOnce();
  await one.query("rollback");
  one.release();
});

test("an index that leaves out another address since its Ponder was started is not filled", async () => {
  const chain = await startTestChain();
  const { ownerUrl } = await freshDatabase();
  const launched = launchIndexerOf({ chain, database: { ownerUrl } });
  onTestFinished(async () => {
    await launched.stop();
    await chain.stop();
  });
  await launched.saying("ponder started");
  const schema = String(launched.said("ponder started")[0]?.schema);
  const other = `insert into ${schema}.own_address values ('0x00000000000000000000000000000000c0ffee09', 0, null)`;
  await withClient(ownerUrl, (client) => client.query(other));
  expect(await launched.ended).toBe(1);
  expect(launched.said("index ready")).toEqual([]);
});
