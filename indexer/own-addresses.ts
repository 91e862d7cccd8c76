import pg from "pg";
import type { Address } from "../api/kernel/wallet.ts";
import { type History, UnfitHistoryError } from "./history/history.ts";
import type { Queryable } from "./schemas.ts";
import type { IndexerSettings } from "./settings.ts";

/** An address of the service, and the first block from which its transfers count in no history; 0: always. */
export interface OwnAddress {
  readonly address: Address;
  readonly fromBlock: number;
}

/** The service's own addresses are others than those that an index leaves out, and its rows would have to change. */
export class OwnAddressError extends Error {
  override readonly name = "OwnAddressError";
}

/** What the settings ask of the addresses that an index leaves out. */
export interface OwnChange {
  readonly added: readonly Address[];
  readonly removed: readonly Address[];
  /** Those of `added` with rows, and those left out always that have rows nevertheless. */
  readonly traces: readonly Trace[];
}

interface Trace {
  readonly address: Address;
  /** Its rows in `wallet_day`: days with a transfer that counts. */
  readonly days: number;
  /** If it has none, its rows in `paid` and `pair`: the days may have been dropped. */
  readonly pairs: number;
  /** Its rows in `escrow_party`: payments in escrow that it made or was to receive. */
  readonly holds: number;
}

/** In a Ponder schema, and read by its view `coverage`. */
export const OWN_ADDRESS_TABLE = "create table own_address (address text primary key, from_block int8 not null)";

export async function readOwnAddresses(db: Queryable, schema: string): Promise<readonly OwnAddress[]> {
  const { rows } = await db.query<{ address: Address; from: string }>(
    `select address, from_block as from from ${pg.escapeIdentifier(schema)}.own_address order by address`,
  );
  return rows.map(({ address, from }) => ({ address, fromBlock: Number(from) }));
}

export async function addOwnAddresses(db: Queryable, schema: string, own: readonly OwnAddress[]): Promise<void> {
  await db.query(
    `insert into ${pg.escapeIdentifier(schema)}.own_address
      select * from unnest($1::text[], $2::int8[]) on conflict (address) do update set from_block = excluded.from_block`,
    [own.map(({ address }) => address), own.map(({ fromBlock }) => fromBlock)],
  );
}

/** What the settings' own addresses would change in this index. */
export async function ownChangeOf(db: Queryable, schema: string, wanted: readonly Address[]): Promise<OwnChange> {
  const known = await readOwnAddresses(db, schema);
  const has = known.map(({ address }) => address);
  const added = wanted.filter((address) => !has.includes(address));
  const always = known.filter(({ fromBlock }) => fromBlock === 0).map(({ address }) => address);
  const removed = has.filter((address) => !wanted.includes(address));
  return {
    added,
    removed,
    traces: [
      ...(await tracesOf(db, schema, added)),
      // Nobody should have written them. A process with other settings may have, had it been started at the same moment.
      ...traces(always, { days: await daysOf(db, schema, always) }),
    ],
  };
}

type Counts = ReadonlyMap<Address, number>;
type Kind = "days" | "pairs" | "holds";

/** Those of these addresses that have rows: every transfer that counts has two in `wallet_day`, and one that stays. */
async function tracesOf(db: Queryable, schema: string, addresses: readonly Address[]): Promise<readonly Trace[]> {
  const days = await daysOf(db, schema, addresses);
  const without = addresses.filter((address) => !days.has(address));
  const [paid, met] = [
    await countBy(db, { schema, table: "paid", columns: ["payer", "payee"], addresses: without }),
    await countBy(db, { schema, table: "pair", columns: ["low", "high"], addresses: without }),
  ];
  const pairs = new Map(without.map((address) => [address, (paid.get(address) ?? 0) + (met.get(address) ?? 0)]));
  // A hold that a preloaded history does not know has none of its merchant's; nor has one before the index's first block.
  const holds = await countBy(db, { schema, table: "escrow_party", columns: ["account"], addresses });
  return traces(addresses, { days, pairs, holds });
}

const traces = (addresses: readonly Address[], counts: Partial<Readonly<Record<Kind, Counts>>>): readonly Trace[] =>
  addresses
    .map((address) => {
      const of = (kind: Kind) => counts[kind]?.get(address) ?? 0;
      return { address, days: of("days"), pairs: of("pairs"), holds: of("holds") };
    })
    .filter(({ days, pairs, holds }) => days + pairs + holds > 0);

const daysOf = (db: Queryable, schema: string, addresses: readonly Address[]): Promise<Counts> =>
  countBy(db, { schema, table: "wallet_day", columns: ["wallet"], addresses });

interface Counted {
  readonly schema: string;
  readonly table: "wallet_day" | "paid" | "pair" | "escrow_party";
  /** Its addresses. Unless there is one, every row is looked at, which is rare: an address of the service is new. */
  readonly columns: readonly string[];
  readonly addresses: readonly Address[];
}

async function countBy(db: Queryable, { schema, table, columns, addresses }: Counted): Promise<Counts> {
  const name = `${pg.escapeIdentifier(schema)}.${table}`;
  const { rows: found } = await db.query<{ exists: boolean }>("select to_regclass($1) is not null as exists", [name]);
  if (addresses.length === 0 || !found[0]?.exists) return new Map();
  const wanted =
    table === "escrow_party" ? "$1::text[]" : "array(select decode(substr(a, 3), 'hex') from unnest($1::text[]) a)";
  const { rows } = await db.query<{ address: Address | Buffer; n: number }>(
    `select address, count(*)::int as n from ${name}, lateral (values ${columns.map((column) => `(${column})`).join()}) side(address)
      where (${columns.map((column) => `${column} = any(${wanted})`).join(" or ")}) and address = any(${wanted}) group by 1`,
    [addresses],
  );
  const asAddress = (stored: Address | Buffer): Address =>
    typeof stored === "string" ? stored : `0x${stored.toString("hex")}`;
  return new Map(rows.map(({ address, n }) => [asAddress(address), n]));
}

/** Whether an index leaves out what it should, or can from now on without any row being another. */
export const isFree = ({ removed, traces }: OwnChange): boolean => removed.length === 0 && traces.length === 0;
export const isNone = (change: OwnChange): boolean => isFree(change) && change.added.length === 0;

const inWords = ({ address, days, pairs, holds }: Trace): string =>
  `${address} has ${days} rows in wallet_day and ${holds} in escrow_party${pairs === 0 ? "" : `, and ${pairs} of older days in paid and pair`}`;

/** @throws OwnAddressError with the number of rows */
export function refuseOwnChange(schema: string, { removed, traces }: OwnChange): never {
  const gone = removed.map((address) => `${address} is left out of it, but is no longer named`);
  throw new OwnAddressError(
    `PAY_TO_ADDRESS, OWN_ADDRESSES, and ESCROW_ADDRESSES do not match the index ${schema}: ${[...traces.map(inWords), ...gone].join("; ")}. Nothing was changed. Correct the addresses; a former one stays in OWN_ADDRESSES. Or set OWN_ADDRESSES_CHANGE: rebuild makes a new index beside this one${removed.length === 0 ? ", from_now_on leaves the address out from the next block on and keeps its rows" : ""}`,
  );
}

/**
 * What a new index leaves out: what it is told to, always. With a history, that is true of what the history leaves out,
 * and of what has no rows in it.
 * @throws UnfitHistoryError with the number of rows
 */
export async function foundingAddresses(
  db: Queryable,
  { ownAddresses, ownAddressesChange }: Pick<IndexerSettings, "ownAddresses" | "ownAddressesChange">,
  history: History | null,
): Promise<readonly OwnAddress[]> {
  if (history === null) return ownAddresses.map((address) => ({ address, fromBlock: 0 }));
  const removed = history.ownAddresses.filter((address) => !ownAddresses.some((own) => own === address));
  const added = ownAddresses.filter((address) => !history.ownAddresses.includes(address));
  const traces = await tracesOf(db, history.schema, added);
  const isLate = ownAddressesChange === "from_now_on";
  if (removed.length > 0 || (traces.length > 0 && !isLate))
    throw new UnfitHistoryError(
      `The history "${history.schema}" does not match PAY_TO_ADDRESS, OWN_ADDRESSES, and ESCROW_ADDRESSES: ${[...removed.map((address) => `it leaves out ${address}`), ...traces.map(inWords)].join("; ")}. Correct the addresses, or recreate it with npm run index:preload`,
    );
  const late = new Set(traces.map(({ address }) => address));
  return ownAddresses.map((address) => ({ address, fromBlock: late.has(address) ? history.lastBlock + 1 : 0 }));
}
