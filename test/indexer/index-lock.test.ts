import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { keepLockAlone } from "../../indexer/index-lock.ts";
import { forFile } from "../support/for-file.ts";
import { freshDatabase } from "../support/service/database.ts";

// Two Ponders that ask for one index's lock, in Ponder's words.

const META = '"live_x"."_ponder_meta"';
const LOOK = `select "value" from ${META} where ${META}."key" = $1`;
const TAKE = `update ${META} set "value" = $1`;
const GIVE_BACK = `update ${META} set "value" = jsonb_set(value, '{is_locked}', to_jsonb(0))`;
const { query } = pg.Client.prototype;
const database = await freshDatabase();
const db = await forFile(new pg.Pool({ connectionString: database.ownerUrl, max: 3 }));

beforeAll(async () => {
  await db.query(`create schema live_x; create table ${META} (key text primary key, value jsonb);
    insert into ${META} values ('app', '{"is_locked": 0}')`);
  keepLockAlone();
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
});
