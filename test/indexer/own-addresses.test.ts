import pg from "pg";
import { afterAll, beforeEach, expect, test } from "vitest";
import { chooseDeployment } from "../../indexer/choose-deployment.ts";
import columns from "../../indexer/columns.json" with { type: "json" };
import { OtherColumnsError } from "../../indexer/columns.ts";
import { readOwnAddresses } from "../../indexer/own-address-table.ts";
import { type CountHolds, OwnAddressError } from "../../indexer/own-addresses.ts";
import { freshDatabase } from "../support/service/database.ts";
import { settingsOf } from "./preloaded.ts";

const HEAD = 41_000_000;
const REACHED = 40_999_990;
const SERVICE = "0x00000000000000000000000000000000c0ffee01";
const FRESH = "0x00000000000000000000000000000000c0ffee02";
const PAID = "0x00000000000000000000000000000000c0ffee03";
const HELD = "0x00000000000000000000000000000000c0ffee04";
/** Their days have been dropped. */
const FORMER = "0x00000000000000000000000000000000c0ffee05";
const FUNDED = "0x00000000000000000000000000000000c0ffee06";
const asBytes = (address: string) => Buffer.from(address.slice(2), "hex");
/** An escrow, with holds in blocks 5 and 6, and one that is new. */
const USED = "0x00000000000000000000000000000000c0ffee07";
const OPENED = "0x00000000000000000000000000000000c0ffee08";
const countHolds: CountHolds = async (escrow, toBlock) => (escrow === USED && toBlock >= 6 ? 2 : 0);
const pools: pg.Pool[] = [];
let db: pg.Pool;

/** An index that the views show, with rows of two wallets. */
beforeEach(async () => {
  const { ownerUrl } = await freshDatabase();
  db = new pg.Pool({ connectionString: ownerUrl, max: 2 });
  pools.push(db);
  const { schema } = await choose();
  await fill(schema);
  await db.query(`create or replace view live.wallet_day as select * from ${schema}.wallet_day`);
  await db.query(
    `insert into ${schema}.wallet_day values (null, 20000, 20000, 1, 0, 0, 1, $1), (null, 20001, 20001, 1, 0, 0, 1, $1)`,
    [asBytes(PAID)],
  );
  await db.query(`insert into ${schema}.paid values (1, 1, 1, null, 1, '', 20000, $1, $2, 0)`, [
    asBytes(FORMER),
    asBytes(PAID),
  ]);
  await db.query(`insert into ${schema}.pair values (0, $1, 20000, $2, 1)`, [asBytes(PAID), asBytes(FUNDED)]);
  await db.query(`create schema live_escrow; create table live_escrow.escrow_payment (payer text, receiver text);
    insert into live_escrow.escrow_payment values ('0x00', '${HELD}')`);
});
afterAll(() => Promise.all(pools.map((pool) => pool.end())));

const choose = (changed: Record<string, string> = {}) => {
  const base = { PAY_TO_ADDRESS: SERVICE, INDEX_HISTORY: "", START_BLOCK: "5" };
  return chooseDeployment(db, settingsOf({ ...base, ...changed }), { head: HEAD, countHolds });
};
const own = async (changed: Record<string, string>) => {
  const { schema } = await choose(changed);
  const left = (await readOwnAddresses(db, schema)).map(({ address, fromBlock }) => [address, fromBlock]);
  return [schema, Object.fromEntries(left)] as const;
};

/** The tables of a release, as a Ponder process leaves them. */
async function fill(schema: string, lockedAt = 0): Promise<void> {
  for (const [table, described] of Object.entries(columns)) {
    const parts = described.map((column) => column.split(" key ") as [string, string | undefined]);
    const keys = parts.filter(([, place]) => place !== undefined).toSorted(([, a], [, b]) => Number(a) - Number(b));
    const key = keys.map(([column]) => column.split(" ")[0]).join();
    await db.query(`create table ${schema}.${table} (${parts.map(([column]) => column).join()}, primary key (${key}))`);
  }
  const checkpoint = `1800000000${"8453".padStart(16, "0")}${String(REACHED).padStart(16, "0")}`.padEnd(75, "0");
  await db.query(`create table ${schema}._ponder_meta (key text primary key, value jsonb not null);
    insert into ${schema}._ponder_meta values ('app', '{"is_locked": 1, "heartbeat_at": ${lockedAt}, "is_ready": 1}');
    create table ${schema}._ponder_checkpoint (chain_name text, chain_id int8, latest_checkpoint text);
    insert into ${schema}._ponder_checkpoint values ('base', 8453, '${checkpoint}')`);
}

const both = `${FRESH},${PAID}`;

test("a fresh one is left out of the same index, always", async () => {
  const { schema } = await choose();
  expect(await own({})).toEqual([schema, { [SERVICE]: 0 }]);
  expect(await own({ OWN_ADDRESSES: FRESH })).toEqual([schema, { [SERVICE]: 0, [FRESH]: 0 }]);
});

test("one with rows is refused with their number, and nothing is changed", async () => {
  const { schema } = await choose();
  await expect(choose({ OWN_ADDRESSES: both })).rejects.toThrow(OwnAddressError);
  await expect(choose({ OWN_ADDRESSES: both })).rejects.toThrow(
    `${PAID} has 2 rows in wallet_day and 0 in escrow_payment`,
  );
  await expect(choose({ OWN_ADDRESSES: HELD })).rejects.toThrow("0 rows in wallet_day and 1 in escrow_payment");
  for (const dropped of [FORMER, FUNDED])
    await expect(choose({ OWN_ADDRESSES: dropped })).rejects.toThrow("and 1 of older days in paid and pair");
  expect(await own({})).toEqual([schema, { [SERVICE]: 0 }]);
});

test("one with rows is left out from the next block on, and stays so, if that is asked for", async () => {
  const { schema } = await choose();
  const expected = [schema, { [SERVICE]: 0, [FRESH]: 0, [PAID]: REACHED + 1 }];
  expect(await own({ OWN_ADDRESSES: both, OWN_ADDRESSES_CHANGE: "from_now_on" })).toEqual(expected);
  expect(await own({ OWN_ADDRESSES: both })).toEqual(expected);
  expect(await own({ OWN_ADDRESSES: both, OWN_ADDRESSES_CHANGE: "rebuild" })).toEqual(expected);
});

test("a former one is refused, unless a new index is made", async () => {
  const { schema } = await choose({ OWN_ADDRESSES: FRESH });
  for (const change of ["refuse", "from_now_on"])
    await expect(choose({ OWN_ADDRESSES_CHANGE: change })).rejects.toThrow(`${FRESH} is left out of it`);
  const [rebuilt, left] = await own({ OWN_ADDRESSES_CHANGE: "rebuild" });
  expect([rebuilt === schema, left]).toEqual([false, { [SERVICE]: 0 }]);
});

test("a new index is made beside the one that serves, gone on with after a restart, and left for the old one", async () => {
  const { schema } = await choose();
  const rebuild = { OWN_ADDRESSES_CHANGE: "rebuild" };
  const [first, left] = await own({ OWN_ADDRESSES: PAID, ...rebuild });
  expect([first === schema, left]).toEqual([false, { [SERVICE]: 0, [PAID]: 0 }]);
  await fill(first);
  expect(await own({ OWN_ADDRESSES: PAID })).toEqual([first, left]);
  expect(await own({ OWN_ADDRESSES: both })).toEqual([first, { ...left, [FRESH]: 0 }]);
  expect((await choose()).schema).toBe(schema);
  // Changed once more on the way: what is not finished is made again.
  const [again, other] = await own({ OWN_ADDRESSES: HELD, ...rebuild });
  expect([again, other]).toEqual([first, { [SERVICE]: 0, [HELD]: 0 }]);
  expect((await choose()).schema).toBe(schema);
});

test("nothing is changed under a process that writes the rows", async () => {
  const { schema } = await choose();
  const lock = (at: number) =>
    db.query(`update ${schema}._ponder_meta set value = jsonb_set(value, '{heartbeat_at}', '${at}')`);
  await lock(Date.now());
  const free = { OWN_ADDRESSES: FRESH, EXCLUSIVE: "0" };
  await expect(choose(free)).rejects.toThrow(`Another process writes ${schema}`);
  expect(await own({ EXCLUSIVE: "0" })).toEqual([schema, { [SERVICE]: 0 }]);
  await lock(Date.now() - 25_001);
  expect((await choose(free)).schema).toBe(schema);
});

test("nothing is changed under a process that is just taking the lock", async () => {
  const { schema } = await choose();
  const taking = await db.connect();
  await taking.query(`begin; lock table ${schema}.own_address in share mode`);
  const chosen = choose({ OWN_ADDRESSES: FRESH, EXCLUSIVE: "0" });
  const waits = `select from pg_locks where not granted and relation = '${schema}.own_address'::regclass`;
  await expect.poll(async () => (await taking.query(waits)).rowCount).toBe(1);
  await taking.query(`update ${schema}._ponder_meta set value = value || '{"heartbeat_at": ${Date.now()}}'; commit`);
  taking.release();
  await expect(chosen).rejects.toThrow(`Another process writes ${schema}`);
  expect(await own({ EXCLUSIVE: "0" })).toEqual([schema, { [SERVICE]: 0 }]);
});

test("rows of one that should never have had any are refused", async () => {
  const { schema } = await choose({ OWN_ADDRESSES: FRESH });
  await db.query(`update ${schema}.wallet_day set wallet = $1 where day = 20000`, [asBytes(FRESH)]);
  await expect(choose({ OWN_ADDRESSES: FRESH })).rejects.toThrow(`${FRESH} has 1 rows in wallet_day`);
});

/** From which block on the rows have an escrow's holds. */
const followed = async (changed: Record<string, string>) => {
  const { schema } = await choose(changed);
  const escrows = (await readOwnAddresses(db, schema)).filter(({ escrowFrom }) => escrowFrom !== null);
  return [schema, Object.fromEntries(escrows.map(({ address, escrowFrom }) => [address, escrowFrom]))] as const;
};

test("an escrow without holds is followed by the same index; one with holds is refused with their number", async () => {
  const { schema } = await choose();
  expect(await followed({ ESCROW_ADDRESSES: OPENED })).toEqual([schema, { [OPENED]: 0 }]);
  const used = { ESCROW_ADDRESSES: `${OPENED},${USED}` };
  await expect(choose(used)).rejects.toThrow(`${USED} has had 2 holds that are not in the rows`);
  const late = [schema, { [OPENED]: 0, [USED]: REACHED + 1 }];
  expect(await followed({ ...used, OWN_ADDRESSES_CHANGE: "from_now_on" })).toEqual(late);
  expect(await followed(used)).toEqual(late);
});

test("an escrow that was an own address without being followed is refused, too, and so is a former one", async () => {
  const { schema } = await choose({ OWN_ADDRESSES: USED });
  await expect(choose({ ESCROW_ADDRESSES: USED })).rejects.toThrow(OwnAddressError);
  expect((await choose({ OWN_ADDRESSES: USED, ESCROW_ADDRESSES: OPENED })).schema).toBe(schema);
  const former = { OWN_ADDRESSES: `${USED},${OPENED}` };
  await expect(choose(former)).rejects.toThrow(`${OPENED} is left out of it or followed, but is no longer named`);
  const [rebuilt, escrows] = await followed({ ESCROW_ADDRESSES: USED, OWN_ADDRESSES_CHANGE: "rebuild" });
  expect([rebuilt === schema, escrows]).toEqual([false, { [USED]: 0 }]);
});

test.each([
  ["alter table wallet_day drop column touched", 'wallet_day lacks "touched integer not null"'],
  ["alter table pair add column fresh text", 'pair has "fresh text"'],
  ["alter table paid alter column count type int8", 'paid has "count bigint not null"'],
  ["drop table hold", 'hold lacks "id text not null key 0"'],
])("an index of other columns is refused: %s", async (change, expected) => {
  const { schema } = await choose();
  await db.query("drop view live.wallet_day");
  await db.query(`set search_path to ${schema}; ${change}; set search_path to default`);
  await expect(choose()).rejects.toThrow(OtherColumnsError);
  await expect(choose()).rejects.toThrow(expected);
});
