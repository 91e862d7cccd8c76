import fc from "fast-check";
import pg from "pg";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createActivityIndex } from "../../api/platform/index/activity.ts";
import type { Address } from "../../api/platform/wallet.ts";
import { createTable, keyColumns, namesOf } from "../../indexer/history/rows.ts";
import { type TouchedDay, withAge } from "../../indexer/ledger.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { forFile } from "../support/for-file.ts";
import { freshDatabase } from "../support/service/database.ts";
import { waitUntil } from "../support/wait-until.ts";

const DAY_SECONDS = 86_400;
/** Day 0 of these histories: 2026-01-01. */
const DAY_0 = Date.UTC(2026, 0, 1) / 1000 / DAY_SECONDS;
const at = (day: number, second = 0) => new Date(((DAY_0 + day) * DAY_SECONDS + second) * 1000);
const TABLES = `
  create table live.coverage (id int primary key, scope text not null, first_block int not null);
  set search_path = live;
  ${createTable("wallet_day")};
  alter table wallet_day add primary key (${keyColumns("wallet_day")});
  reset search_path;
  create table live.position (block int8 not null, at int8 not null);
  insert into live.coverage values (0, 'full', 41000000);
  insert into live.position values (1, ${at(10_000).getTime() / 1000})`;

let wallets = 0;
const freshWallet = (): Address => `0x${(++wallets).toString(16).padStart(40, "0")}`;

const { ownerUrl, apiUrl } = await freshDatabase();
const owner = await forFile(new pg.Pool({ connectionString: ownerUrl, max: 2 }));
const reader = await forFile(new pg.Pool({ connectionString: apiUrl, max: 2 }));

const setPosition = (time: Date, block: number) =>
  owner.query("update live.position set block = $1, at = $2", [block, time.getTime() / 1000]);

interface Row {
  readonly day: number;
  readonly second?: number;
  readonly paid?: number;
  readonly touched?: number;
  readonly ages?: string | null;
}

async function write(wallet: Address, rows: readonly Row[]): Promise<void> {
  for (const { day, second = 0, paid = 0, touched = 1, ages = null } of rows) {
    const bytes = [Buffer.from(wallet.slice(2), "hex"), ages === null ? null : Buffer.from(ages, "base64")];
    const [key, last_at] = [DAY_0 + day, (DAY_0 + day) * DAY_SECONDS + second];
    const row: Record<string, unknown> = { wallet: bytes[0], day: key, paid, touched, ages: bytes[1], last_at };
    // Columns that these tests do not read are 0.
    const values = namesOf("wallet_day").map((name) => (Object.hasOwn(row, name) ? row[name] : 0));
    await owner.query(`insert into live.wallet_day values (${values.map((_, place) => `$${place + 1}`)})`, values);
  }
}

describe("without an index", () => {
  test("There is no answer before the first backfill is complete, and one soon afterwards", async () => {
    const index = createActivityIndex(reader, { viewsSchema: "live" });
    expect(await index.activity(freshWallet(), at(0))).toBeNull();
    expect(await index.position()).toBeNull();
    await owner.query(TABLES);
    await expect.poll(() => index.activity(freshWallet(), at(0)), { timeout: 30_000 }).not.toBeNull();
  });

  test("There is no answer from a schema that does not exist", async () => {
    const index = createActivityIndex(reader, { viewsSchema: "nowhere" });
    expect(await index.activity(freshWallet(), at(0))).toBeNull();
  });

  test("There is no answer from a database that is down", async () => {
    const pool = new pg.Pool({ host: "127.0.0.1", port: await freePort() });
    expect(await createActivityIndex(pool, { viewsSchema: "live" }).activity(freshWallet(), at(0))).toBeNull();
    await pool.end();
  });

  test("The reason for an unavailable index is logged once, and again after it was available", async () => {
    const warned: unknown[][] = [];
    const log = { warn: (...facts: unknown[]) => void warned.push(facts) };
    const index = createActivityIndex(reader, { viewsSchema: "live", log });
    const [early, behind] = [at(9_999), new Date(at(10_000).getTime() + 60_001)];
    expect(await index.activity(freshWallet(), early)).not.toBeNull();
    expect([await index.activity(freshWallet(), behind), await index.activity(freshWallet(), behind)]).toEqual([
      null,
      null,
    ]);
    const lagging = [{ behind_seconds: 60 }, "the index is behind the chain; it counts as unavailable"];
    expect(warned).toEqual([lagging]);
    expect(await index.activity(freshWallet(), early)).not.toBeNull();
    expect(await index.activity(freshWallet(), behind)).toBeNull();
    expect(warned).toEqual([lagging, lagging]);
    const nowhere = createActivityIndex(reader, { viewsSchema: "nowhere", log });
    expect(await nowhere.activity(freshWallet(), at(0))).toBeNull();
    expect(warned.at(-1)).toEqual([
      { err: expect.objectContaining({ message: 'relation "nowhere.coverage" does not exist' }) },
      "the index cannot be read; it counts as unavailable",
    ]);
  });

  test("A read that waits for more than a second is aborted, and there is no other query for a second", async () => {
    const index = createActivityIndex(reader, { viewsSchema: "live" });
    let asked = 0;
    const count = () => void asked++;
    reader.on("acquire", count);
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => {
      vi.useRealTimers();
      reader.off("acquire", count);
    });
    const read = (later: number) => {
      vi.advanceTimersByTime(later);
      return index.activity(freshWallet(), at(0));
    };
    const blocker = await owner.connect();
    await blocker.query("begin; lock table live.wallet_day in access exclusive mode");
    const started = Date.now();
    expect(await read(0)).toBeNull();
    expect(Date.now() - started).toBeGreaterThanOrEqual(950);
    await blocker.query("rollback");
    blocker.release();
    const before = asked;
    expect([await read(0), await read(999), asked]).toEqual([null, null, before]);
    expect(await waitUntil(async () => (await read(1_000)) !== null, 30_000)).toBe(true);
  });

  test("A fault in our code is not mistaken for a missing index", async () => {
    await owner.query("create schema odd; grant usage on schema odd to trust_api");
    await owner.query(
      "create table odd.coverage (id int); create table odd.position (id int); create table odd.wallet_day (id int)",
    );
    await owner.query("grant select on all tables in schema odd to trust_api");
    const index = createActivityIndex(reader, { viewsSchema: "odd" });
    await expect(index.activity(freshWallet(), at(0))).rejects.toMatchObject({ code: "42703" });
  });
});

/** A wallet's transfers: the day and the counterparty of each, in the chain's order. */
type Touches = readonly { readonly day: number; readonly other: number }[];

/** Transfers over about 200 days with few counterparties, so that each returns after every length of gap. */
const touches: fc.Arbitrary<Touches> = fc
  .array(fc.record({ day: fc.integer({ min: 0, max: 200 }), other: fc.integer({ min: 0, max: 7 }) }), { maxLength: 60 })
  .map((list) => list.toSorted((a, b) => a.day - b.day));

/** The rows that the handlers would write. */
function rowsOf(history: Touches): readonly TouchedDay[] {
  const lastDay = new Map<number, number>();
  const rows = new Map<number, TouchedDay>();
  for (const { day, other } of history) {
    const before = lastDay.get(other);
    if (before === day) continue;
    lastDay.set(other, day);
    const row = rows.get(day) ?? { day, touched: 0, ages: null };
    const ages = withAge(row.ages, before === undefined ? null : day - before);
    rows.set(day, { day, touched: row.touched + 1, ages });
  }
  return [...rows.values()];
}

/** The expected count, by definition. */
const countDistinct = (history: Touches, first: number, last: number): number =>
  new Set(history.filter(({ day }) => day >= first && day <= last).map(({ other }) => other)).size;

describe("the activity of a wallet", () => {
  const index = () => createActivityIndex(reader, { viewsSchema: "live" });

  test("A wallet that was never seen has no activity and no last day", async () => {
    expect(await index().activity(freshWallet(), at(100, 5))).toMatchObject({
      settledPayments: 0,
      distinctCounterparties: 0,
      lastSeenDays: null,
      firstDay: "2026-01-12",
      lastDay: "2026-04-11",
      scope: "full",
      firstBlock: 41_000_000,
    });
  });

  test("The window is the 90 UTC calendar days that end today", async () => {
    const wallet = freshWallet();
    await write(wallet, [
      { day: 10, second: 86_399, paid: 1 },
      { day: 11, second: 0, paid: 10 },
      { day: 100, second: 86_399, paid: 100 },
      { day: 101, second: 0, paid: 1_000 },
    ]);
    const paid = async (now: Date) => (await index().activity(wallet, now))?.settledPayments;
    expect(await paid(at(100, 0))).toBe(110);
    expect(await paid(at(100, 86_399))).toBe(110);
    expect(await paid(at(99, 86_399))).toBe(11);
    expect(await paid(at(101, 0))).toBe(1_100);
  });

  test.each([
    [at(50, 3_600), 0],
    [at(51, 3_599), 0],
    [at(51, 3_600), 1],
    [at(139, 3_600), 89],
    [at(140, 0), null],
    [at(50, 0), 0],
  ])("At %s it was last seen %s whole days earlier", async (now, days) => {
    const wallet = freshWallet();
    await write(wallet, [{ day: 40 }, { day: 50, second: 3_600 }]);
    expect((await index().activity(wallet, now))?.lastSeenDays).toBe(days);
  });

  test("Distinct counterparties equal a brute-force count, in windows that begin next to a transfer", async () => {
    const property = fc.asyncProperty(touches, async (history) => {
      const wallet = freshWallet();
      await write(wallet, rowsOf(history));
      for (const { day } of history.slice(0, 12)) {
        for (const first of [day, day + 1]) {
          const answer = await index().activity(wallet, at(first + 89, 43_200));
          expect(answer?.distinctCounterparties).toBe(countDistinct(history, first, first + 89));
        }
      }
    });
    await fc.assert(property, { numRuns: 60 });
  });
});

test("The position is the one that the index publishes, and without it the index is unavailable", async () => {
  await setPosition(new Date(1_790_000_000_000), 41_234_567);
  const position = await createActivityIndex(reader, { viewsSchema: "live" }).position();
  expect(position).toEqual({ block: 41_234_567, timestamp: new Date(1_790_000_000_000) });
  await owner.query("delete from live.position");
  const without = createActivityIndex(reader, { viewsSchema: "live" });
  expect([await without.position(), await without.activity(freshWallet(), at(0))]).toEqual([null, null]);
  await owner.query("insert into live.position values (1, 1)");
});

test("An index more than a minute behind is unavailable until it has caught up", async () => {
  const wallet = freshWallet();
  const now = at(400);
  for (const [secondsBehind, available] of [
    [60, true],
    [61, false],
    [0, true],
  ] as const) {
    await setPosition(new Date(now.getTime() - secondsBehind * 1000), 7);
    const index = createActivityIndex(reader, { viewsSchema: "live" });
    expect((await index.activity(wallet, now)) !== null, `${secondsBehind} s behind`).toBe(available);
  }
});
