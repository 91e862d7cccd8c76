import pg from "pg";
import { expect, test } from "vitest";
import { dropDays } from "../../indexer/days.ts";
import { forFile } from "../support/for-file.ts";
import { freshDatabase } from "../support/service/database.ts";

const [INDEX, OLDER] = ["live_0123abcd_1", "live_4567abcd_1"];
const TODAY = 20_500;
const database = await freshDatabase();
const db = await forFile(new pg.Pool({ connectionString: database.ownerUrl, max: 2 }));

/** An index that is final at the end of a day. */
async function make(schema: string, wallet: "bytea" | "text"): Promise<void> {
  await db.query(`create schema ${schema}; create table ${schema}._ponder_meta ();
    create table ${schema}._ponder_checkpoint (chain_id int8, finalized_checkpoint text);
    create table ${schema}.wallet_day (wallet ${wallet}, day int, primary key (wallet, day));
    insert into ${schema}.wallet_day select convert_to(w::text, 'UTF8')::${wallet}, ${TODAY} - d
      from generate_series(1, 3) w, generate_series(0, 120) d`);
  await finalAt(schema, TODAY);
}

async function finalAt(schema: string, day: number): Promise<void> {
  const checkpoint = `${day * 86_400 + 86_399}${"8453".padStart(16, "0")}${"7".padStart(16, "0")}`.padEnd(75, "0");
  await db.query(`delete from ${schema}._ponder_checkpoint`);
  await db.query(`insert into ${schema}._ponder_checkpoint values (8453, $1)`, [checkpoint]);
}

const ages = async (schema: string) =>
  (
    await db.query(
      `select ${TODAY} - max(day) as newest, ${TODAY} - min(day) as oldest, count(*)::int as n from ${schema}.wallet_day`,
    )
  ).rows[0];

test("days that no window reaches back to are dropped, once for each day", async () => {
  expect(await dropDays(db)).toEqual([]);
  await make(INDEX, "bytea");
  await make(OLDER, "text");
  const gone = AbortSignal.abort();
  expect(await dropDays(db, gone)).toEqual([]);
  expect(await dropDays(db)).toEqual([{ schema: INDEX, below: TODAY - 91, rows: 3 * 29 }]);
  // A window of 90 days that ends today begins 89 days ago, and one that ended yesterday 90.
  expect(await ages(INDEX)).toEqual({ newest: 0, oldest: 91, n: 3 * 92 });
  expect(await ages(OLDER)).toMatchObject({ n: 3 * 121 });
  expect(await dropDays(db)).toEqual([]);
  await finalAt(INDEX, TODAY + 1);
  expect(await dropDays(db)).toEqual([{ schema: INDEX, below: TODAY - 90, rows: 3 }]);
});
