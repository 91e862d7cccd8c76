import pg from "pg";
import { expect, test } from "vitest";
import { createActivityIndex } from "../../api/adapters/index/activity.ts";
import { createScoreIndex } from "../../api/adapters/index/score.ts";
import columns from "../../indexer/columns.json" with { type: "json" };
import { openToReaders } from "../../indexer/deployment.ts";
import { ROWS_VERSION } from "../../indexer/rows-version.ts";
import { hasCaughtUp, showIndex, shownSchema, whyOvertaken } from "../../indexer/succession.ts";
import { forFile } from "../support/for-file.ts";
import { freshDatabase } from "../support/service/database.ts";

// The views change from one index to another, of other columns, while the API reads them.

const WALLET = `0x${"ab".repeat(20)}` as const;
const NOW = new Date(1_790_000_000_000);
const [AT, DAY] = [NOW.getTime() / 1_000, Math.floor(NOW.getTime() / 86_400_000)];
const database = await freshDatabase();
const db = await forFile(new pg.Pool({ connectionString: database.ownerUrl, max: 3 }));
const reader = await forFile(new pg.Pool({ connectionString: database.apiUrl, max: 4 }));
const never = new AbortController().signal;

interface Made {
  readonly schema: string;
  readonly bytes: "bytea" | "text";
  /** How many payments the wallet has made, which is also the last block. */
  readonly paid: number;
  readonly version?: number;
}

/** An index as Ponder leaves it, with one wallet. */
async function make({ schema, bytes, paid, version }: Made): Promise<void> {
  const tables = Object.entries(columns).map(([table, described]) => {
    const parts = described.map((column) => column.split(" key ")[0]?.replace("bytea", bytes));
    return `create table ${schema}.${table} (${parts.join()})`;
  });
  await db.query(`create schema ${schema}; ${tables.join("; ")};
    create table ${schema}._ponder_meta (key text primary key, value jsonb);
    insert into ${schema}._ponder_meta values ('app', '{}');
    create table ${schema}.own_address (address text);
    create view ${schema}.coverage as select 'full'::text as scope, 1 as first_block${version === undefined ? "" : `, ${version} as rows_version`};
    create view ${schema}.position as select ${paid}::int8 as block, ${AT}::int8 as at`);
  const wallet = bytes === "bytea" ? Buffer.from(WALLET.slice(2), "hex") : WALLET;
  await db.query(
    `insert into ${schema}.wallet_day (wallet, day, paid, qualifying, qualifying_atomic, touched, last_at)
      values ($1, ${DAY}, ${paid}, ${paid}, 1000, 1, ${AT})`,
    [wallet],
  );
}

/** Whether a live process writes it. */
const hold = (schema: string, isHeld: boolean) =>
  db.query(`update ${schema}._ponder_meta set value = $1`, [
    { is_locked: isHeld ? 1 : 0, heartbeat_at: isHeld ? Date.now() + 600_000 : 0 },
  ]);

const [OLD, NEW] = ["live_00000001_1", "live_00000002_1"];
await make({ schema: OLD, bytes: "text", paid: 1 });
await make({ schema: NEW, bytes: "bytea", paid: 2, version: ROWS_VERSION });
const show = (schema: string) => showIndex(db, { schema, viewsSchema: "live" }, never);

test("while the views change, every reader has an answer, and all of it from one index", async () => {
  expect(await show(OLD)).toBeNull();
  await openToReaders(db, "live");
  const lag = { viewsSchema: "live", maxLagMs: Number.POSITIVE_INFINITY };
  const [activity, score] = [createActivityIndex(reader, lag), createScoreIndex(reader, lag)];
  let [isOver, answers] = [false, 0];
  const seen = new Set<unknown>();
  const sell = async () => {
    while (!isOver) {
      const [reading] = (await score.read([WALLET], NOW)) ?? [];
      seen.add(JSON.stringify([reading?.as_of_block, reading?.chain.payments.days[0]?.count]));
      seen.add((await activity.activity(WALLET, NOW))?.settledPayments);
      answers += 1;
    }
  };
  const selling = Promise.all([sell(), sell(), sell()]);
  const sold = async () => {
    const before = answers;
    await Promise.race([
      selling,
      expect.poll(() => answers, { timeout: 20_000, interval: 1 }).toBeGreaterThan(before + 3),
    ]);
  };
  try {
    for (let round = 0; round < 4; round += 1) {
      expect(await show(NEW)).toBe(OLD);
      await sold();
      expect(await show(OLD)).toBe(NEW);
      await sold();
    }
  } finally {
    isOver = true;
  }
  await selling;
  expect([...seen].map(String).toSorted()).toEqual(["1", "2", "[1,1]", "[2,2]"]);
});

test("a reader that does not end holds the views back, and nobody else", async () => {
  const slow = await db.connect();
  await slow.query("begin; select from live.wallet_day");
  let isShown = false;
  const showing = show(NEW).then((before) => {
    isShown = true;
    return before;
  });
  const index = createActivityIndex(reader, { viewsSchema: "live", maxLagMs: Number.POSITIVE_INFINITY });
  for (let n = 0; n < 50; n += 1) expect(await index.activity(WALLET, NOW)).toMatchObject({ settledPayments: 1 });
  expect(isShown).toBe(false);
  await slow.query("commit");
  slow.release();
  expect(await showing).toBe(OLD);
  expect(await shownSchema(db, "live")).toBe(NEW);
});

test("views that show the index already stay as they are", async () => {
  const oid = async () => (await db.query("select 'live.wallet_day'::regclass::oid as oid")).rows[0].oid;
  const before = await oid();
  expect(await show(NEW)).toBe(NEW);
  expect(await oid()).toBe(before);
});

test("an index has caught up when it is nearly where the one shown is, and says so", async () => {
  const caughtUp = (schema: string) => hasCaughtUp(db, { schema, viewsSchema: "live" });
  await make({ schema: "live_00000004_1", bytes: "bytea", paid: 100 });
  await make({ schema: "live_00000005_1", bytes: "bytea", paid: 94 });
  await make({ schema: "live_00000006_1", bytes: "bytea", paid: 95 });
  expect(await caughtUp("live_00000005_1")).toBe(true);
  await show("live_00000004_1");
  expect(await caughtUp("live_00000004_1")).toBe(true);
  expect(await caughtUp("live_00000005_1")).toBe(false);
  expect(await caughtUp("live_00000006_1")).toBe(true);
  await db.query(
    "create or replace view live_00000006_1.position as select 1::int8 as block, 1::int8 as at where false",
  );
  expect(await caughtUp("live_00000006_1")).toBe(false);
  await show(NEW);
});

test("this release waits for a newer one while that one lives, and for no other", async () => {
  await hold(NEW, true);
  expect(await whyOvertaken(db, "live")).toBeNull();
  await make({ schema: "live_00000003_1", bytes: "bytea", paid: 3, version: ROWS_VERSION + 1 });
  await hold("live_00000003_1", true);
  expect(await whyOvertaken(db, "live")).toBeNull();
  await show("live_00000003_1");
  expect(await whyOvertaken(db, "live")).toContain(`a newer release serves live_00000003_1`);
  // It lets go of its lock when it starts again.
  await db.query("update live_00000003_1._ponder_meta set value = value || '{\"is_locked\": 0}'");
  expect(await whyOvertaken(db, "live")).toContain("a newer release serves");
  await hold("live_00000003_1", false);
  expect(await whyOvertaken(db, "live")).toBeNull();
  await show(OLD);
  await hold(OLD, true);
  expect(await whyOvertaken(db, "live")).toBeNull();
});
