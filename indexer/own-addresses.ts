import pg from "pg";
import { escrowViewsOf } from "../api/kernel/index-views.ts";
import type { Address } from "../api/kernel/wallet.ts";
import { type History, UnfitHistoryError } from "./history/history.ts";
import { reachedBlock } from "./marks.ts";
import { type OwnAddress, readOwnAddresses } from "./own-address-table.ts";
import type { Queryable } from "./schemas.ts";
import type { IndexerSettings } from "./settings.ts";

/** How many holds an escrow has had up to this block, by the node. */
export type CountHolds = (escrow: Address, toBlock: number) => Promise<number>;

/** The service's own addresses are others than those that an index leaves out, and its rows would have to change. */
export class OwnAddressError extends Error {
  override readonly name = "OwnAddressError";
}

/** What the settings ask of the addresses that an index leaves out. */
export interface OwnChange {
  readonly added: readonly Address[];
  readonly removed: readonly Address[];
  /** Escrows whose holds the rows do not have yet. */
  readonly opened: readonly Address[];
  /** Those of `added` with rows, and those left out always that have rows nevertheless. */
  readonly traces: readonly Trace[];
}

interface Trace {
  readonly address: Address;
  /** Its rows in `wallet_day`: days with a transfer that counts. */
  readonly days: number;
  /** If it has none, its rows in `paid` and `pair`: the days may have been dropped. */
  readonly pairs: number;
  /** Payments in escrow that it made or was to receive. */
  readonly holds: number;
  /** As an escrow: the holds in it that the rows lack. */
  readonly sales: number;
}

type Wanted = Pick<IndexerSettings, "ownAddresses" | "escrows" | "viewsSchema">;

interface Comparison {
  readonly wanted: Wanted;
  /** What the index begins with. */
  readonly history: History | null;
  readonly countHolds: CountHolds;
}

/** What the settings' own addresses and escrows would change in this index. */
export async function ownChangeOf(
  db: Queryable,
  schema: string,
  { wanted, history, countHolds }: Comparison,
): Promise<OwnChange> {
  const known = await readOwnAddresses(db, schema);
  const has = known.map(({ address }) => address);
  const follows = known.filter(({ escrowFrom }) => escrowFrom !== null).map(({ address }) => address);
  const [added, opened] = [without(wanted.ownAddresses, has), without(wanted.escrows, follows)];
  const always = known.filter(({ fromBlock }) => fromBlock === 0).map(({ address }) => address);
  const reached = await reachedBlock(db, schema);
  // Until its first checkpoint an index has not taken its history over.
  const rows = reached === null && history !== null ? history.schema : schema;
  const index = { schema: rows, viewsSchema: wanted.viewsSchema };
  const sales = await salesIn(opened, reached, countHolds);
  return {
    ...{ added, opened },
    removed: [...new Set([...without(has, wanted.ownAddresses), ...without(follows, wanted.escrows)])],
    traces: [
      ...(await tracesOf(db, index, added)),
      ...sales,
      // Nobody should have written them. A process with other settings may have, had it been started at the same moment.
      ...traces(always, { days: await daysOf(db, schema, always) }),
    ],
  };
}

const without = (all: readonly Address[], some: readonly Address[]) => all.filter((address) => !some.includes(address));

type Counts = ReadonlyMap<Address, number>;
type Kind = "days" | "pairs" | "holds" | "sales";

/** Those of these escrows with holds that the rows would have, had they followed it. */
async function salesIn(
  escrows: readonly Address[],
  reached: number | null,
  countHolds: CountHolds,
): Promise<readonly Trace[]> {
  const sales = new Map<Address, number>();
  for (const address of reached === null ? [] : escrows) sales.set(address, await countHolds(address, reached ?? 0));
  return traces(escrows, { sales });
}

/** Where rows are: those of payments, and the views of the escrows. */
interface Index {
  readonly schema: string;
  readonly viewsSchema: string;
}

/** Those of these addresses that have rows: every transfer that counts has two in `wallet_day`, and one that stays. */
async function tracesOf(
  db: Queryable,
  { schema, viewsSchema }: Index,
  addresses: readonly Address[],
): Promise<readonly Trace[]> {
  const days = await daysOf(db, schema, addresses);
  const others = addresses.filter((address) => !days.has(address));
  const [paid, met] = [
    await countBy(db, { schema, table: "paid", columns: ["payer", "payee"], addresses: others }),
    await countBy(db, { schema, table: "pair", columns: ["low", "high"], addresses: others }),
  ];
  const pairs = new Map(others.map((address) => [address, (paid.get(address) ?? 0) + (met.get(address) ?? 0)]));
  // A hold that a preloaded history does not know has none of its merchant's; nor has one before the index's first block.
  const escrows = escrowViewsOf(viewsSchema);
  const holds = await countBy(db, {
    ...{ schema: escrows, table: "escrow_payment", columns: ["payer", "receiver"] },
    addresses,
  });
  return traces(addresses, { days, pairs, holds });
}

const traces = (addresses: readonly Address[], counts: Partial<Readonly<Record<Kind, Counts>>>): readonly Trace[] =>
  addresses
    .map((address) => {
      const of = (kind: Kind) => counts[kind]?.get(address) ?? 0;
      return { address, days: of("days"), pairs: of("pairs"), holds: of("holds"), sales: of("sales") };
    })
    .filter(({ days, pairs, holds, sales }) => days + pairs + holds + sales > 0);

const daysOf = (db: Queryable, schema: string, addresses: readonly Address[]): Promise<Counts> =>
  countBy(db, { schema, table: "wallet_day", columns: ["wallet"], addresses });

interface Counted {
  readonly schema: string;
  readonly table: "wallet_day" | "paid" | "pair" | "escrow_payment";
  /** Its addresses. Unless there is one, every row is looked at, which is rare: an address of the service is new. */
  readonly columns: readonly string[];
  readonly addresses: readonly Address[];
}

async function countBy(db: Queryable, { schema, table, columns, addresses }: Counted): Promise<Counts> {
  const name = `${pg.escapeIdentifier(schema)}.${table}`;
  const { rows: found } = await db.query<{ exists: boolean }>("select to_regclass($1) is not null as exists", [name]);
  if (addresses.length === 0 || !found[0]?.exists) return new Map();
  const wanted =
    table === "escrow_payment" ? "$1::text[]" : "array(select decode(substr(a, 3), 'hex') from unnest($1::text[]) a)";
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
export const isNone = (change: OwnChange): boolean =>
  isFree(change) && change.added.length + change.opened.length === 0;

const inWords = ({ address, days, pairs, holds, sales }: Trace): string =>
  sales > 0
    ? `${address} has had ${sales} holds that are not in the rows`
    : `${address} has ${days} rows in wallet_day and ${holds} in escrow_payment${pairs === 0 ? "" : `, and ${pairs} of older days in paid and pair`}`;

/** @throws OwnAddressError with the number of rows */
export function refuseOwnChange(schema: string, { removed, traces }: OwnChange): never {
  const gone = removed.map((address) => `${address} is left out of it or followed, but is no longer named`);
  throw new OwnAddressError(
    `PAY_TO_ADDRESS, OWN_ADDRESSES, and ESCROW_ADDRESSES do not match the index ${schema}: ${[...traces.map(inWords), ...gone].join("; ")}. Nothing was changed. Correct the addresses; a former one stays in OWN_ADDRESSES, an escrow in ESCROW_ADDRESSES. Or set OWN_ADDRESSES_CHANGE: rebuild makes a new index beside this one${removed.length === 0 ? ", from_now_on leaves the address out from the next block on and keeps its rows" : ""}`,
  );
}

/** Whether an index's rows have holds of this escrow from its own first one on. */
export const isFollowedSince = (change: OwnChange, address: Address): boolean =>
  !change.traces.some((trace) => trace.address === address);

/**
 * What a new index leaves out: what it is told to, always. With a history, that is true of what the history leaves out,
 * and of what has no rows in it.
 * @throws UnfitHistoryError with the number of rows
 */
export async function foundingAddresses(
  db: Queryable,
  settings: Wanted & Pick<IndexerSettings, "ownAddressesChange">,
  history: History | null,
): Promise<readonly OwnAddress[]> {
  const { ownAddresses, escrows, viewsSchema } = settings;
  const late = history === null ? [] : await lateIn(db, settings, { history, viewsSchema });
  return ownAddresses.map((address) => ({
    ...{ address, fromBlock: history !== null && late.includes(address) ? history.lastBlock + 1 : 0 },
    escrowFrom: escrows.includes(address) ? 0 : null,
  }));
}

/** The own addresses that a history does not leave out. */
async function lateIn(
  db: Queryable,
  { ownAddresses, ownAddressesChange }: Pick<IndexerSettings, "ownAddresses" | "ownAddressesChange">,
  { history, viewsSchema }: { readonly history: History; readonly viewsSchema: string },
): Promise<readonly Address[]> {
  const removed = history.ownAddresses.filter((address) => !ownAddresses.some((own) => own === address));
  const added = ownAddresses.filter((address) => !history.ownAddresses.includes(address));
  const traces = await tracesOf(db, { schema: history.schema, viewsSchema }, added);
  const isLate = ownAddressesChange === "from_now_on";
  if (removed.length > 0 || (traces.length > 0 && !isLate))
    throw new UnfitHistoryError(
      `The history "${history.schema}" does not match PAY_TO_ADDRESS, OWN_ADDRESSES, and ESCROW_ADDRESSES: ${[...removed.map((address) => `it leaves out ${address}`), ...traces.map(inWords)].join("; ")}. Correct the addresses, or recreate it with npm run index:preload`,
    );
  return traces.map(({ address }) => address);
}
