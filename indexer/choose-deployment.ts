import { createHash } from "node:crypto";
import pg from "pg";
import { columnsOf, expectColumns } from "./columns.ts";
import { type Deployment, isHeld } from "./deployment.ts";
import { expectRows, type History } from "./history/history.ts";
import { reachedBlock } from "./marks.ts";
import { addOwnAddresses, OWN_ADDRESS_TABLE, type OwnAddress, readOwnAddresses } from "./own-address-table.ts";
import {
  type CountHolds,
  foundingAddresses,
  isFollowedSince,
  isFree,
  isNone,
  type OwnChange,
  ownChangeOf,
  refuseOwnChange,
} from "./own-addresses.ts";
import { ROWS_VERSION } from "./rows-version.ts";
import { dropSchemas, findSchema, inTransaction, ponderSchemas, type Queryable } from "./schemas.ts";
import type { IndexerSettings } from "./settings.ts";
import { shownSchema } from "./succession.ts";

const WINDOW_BLOCKS = (90 * 86_400) / 2;
/** Two indexes of the same settings can stand beside each other: the one that serves, and one that replaces its rows. */
const TURNS = [0, 1] as const;
type Turn = (typeof TURNS)[number];

interface Start {
  readonly head: number;
  /** Whether the node still reads the chain, so that its head is not the chain's. Asked only for a new index. */
  readonly isSyncing?: () => Promise<boolean>;
  readonly countHolds: CountHolds;
  readonly history?: History | null;
}

/**
 * The index for these settings: the existing one, else a new, empty one. The start block is chosen once and read from
 * the name afterwards, so a restart does not move it with the head.
 * @throws OwnAddressError, OtherColumnsError if an index is there whose rows these settings or this release contradict
 */
export async function chooseDeployment(db: pg.Pool, settings: IndexerSettings, start: Start): Promise<Deployment> {
  const found = await findIndexes(db, settings, start);
  // Another index may have taken the history over before this one did.
  for (const { schema } of start.history ? found : [])
    if ((await reachedBlock(db, schema)) === null) await expectRows(db, start.history as History);
  const fitting = found.find(({ change }) => isNone(change)) ?? found.find(({ change }) => isFree(change));
  if (fitting !== undefined) return adopt(db, settings, { index: fitting, fromBlock: 0 });
  const [served, unfinished] = found;
  if (served === undefined) return create(db, settings, { ...start, turn: 0 });
  if (settings.ownAddressesChange === "rebuild") {
    if (unfinished !== undefined) {
      await expectFree(db, settings, unfinished.schema);
      await dropSchemas(db, [unfinished.schema]);
    }
    return create(db, settings, { ...start, turn: served.turn === 0 ? 1 : 0 });
  }
  if (settings.ownAddressesChange === "from_now_on" && served.change.removed.length === 0)
    return adopt(db, settings, { index: served, fromBlock: (await lastBlockIn(db, served.schema, start.history)) + 1 });
  return refuseOwnChange(served.schema, served.change);
}

interface Found extends Deployment {
  readonly turn: Turn;
  readonly change: OwnChange;
}

/**
 * What an index is known by, besides the chain. Its own addresses and escrows are in it (own-addresses.ts), because they may
 * grow.
 */
export function prefixOf(settings: IndexerSettings, history: History | null, turn: Turn): string {
  const { scope, startBlock } = settings;
  const key = JSON.stringify([ROWS_VERSION, scope, startBlock, history?.id ?? null, turn]);
  return `${settings.viewsSchema}_${createHash("sha256").update(key).digest("hex").slice(0, 8)}`;
}

/** The indexes of these settings, the one that the views show first. */
async function findIndexes(
  db: pg.Pool,
  settings: IndexerSettings,
  { history = null, countHolds }: Start,
): Promise<readonly Found[]> {
  const indexes: Found[] = [];
  for (const turn of TURNS) {
    const found = await findSchema(db, prefixOf(settings, history, turn));
    if (found === null) continue;
    await expectColumns(db, found.schema, columnsOf(settings.scope));
    const change = await ownChangeOf(db, found.schema, { wanted: settings, history, countHolds });
    indexes.push({ ...found, turn, change });
  }
  const served = await shownSchema(db, settings.viewsSchema);
  return indexes.toSorted((a, b) => Number(b.schema === served) - Number(a.schema === served));
}

/** Once an index has taken a history over, its checkpoint may still be where the escrows begin. */
const lastBlockIn = async (db: pg.Pool, schema: string, history: History | null = null): Promise<number> =>
  Math.max((await reachedBlock(db, schema)) ?? 0, history?.lastBlock ?? 0);

/** Goes on with an index. Addresses that it has not left out so far are left out from this block on. */
async function adopt(
  db: pg.Pool,
  settings: IndexerSettings,
  { index, fromBlock }: { readonly index: Found; readonly fromBlock: number },
): Promise<Deployment> {
  const { schema, startBlock, change } = index;
  if (isNone(change)) return { schema, startBlock };
  await inTransaction(db, async (client) => {
    // A Ponder that takes the index's lock looks at this table in the same transaction (index-lock.ts).
    await client.query(`lock table ${pg.escapeIdentifier(schema)}.own_address in exclusive mode`);
    await expectFree(client, settings, schema);
    const known = new Map((await readOwnAddresses(client, schema)).map((own) => [own.address, own]));
    const traced = change.traces
      .filter(({ days, pairs, holds }) => days + pairs + holds > 0)
      .map(({ address }) => address);
    const changed = [...new Set([...change.added, ...change.opened, ...traced])];
    const changes = changed.map((address): OwnAddress => {
      const { fromBlock: since = 0, escrowFrom = null } = known.get(address) ?? {};
      return {
        address,
        fromBlock: traced.includes(address) ? fromBlock : since,
        escrowFrom: change.opened.includes(address) ? (isFollowedSince(change, address) ? 0 : fromBlock) : escrowFrom,
      };
    });
    await addOwnAddresses(client, schema, changes);
  });
  return { schema, startBlock };
}

/** While a process writes the rows, it goes by what it was started with. */
async function expectFree(db: Queryable, { exclusive }: IndexerSettings, schema: string): Promise<void> {
  if (exclusive || !(await ponderSchemas(db)).includes(schema) || !(await isHeld(db, schema))) return;
  throw new Error(
    `Another process writes ${schema}, or wrote it 25 seconds ago. The addresses that it leaves out can change once it has ended`,
  );
}

async function create(
  db: pg.Pool,
  settings: IndexerSettings,
  { head, isSyncing, history = null, turn }: Start & { readonly turn: Turn },
): Promise<Deployment> {
  const given = history?.firstBlock ?? settings.startBlock;
  if (given === null && (await isSyncing?.()))
    throw new Error(
      `The node still syncs, so that its newest block, ${head}, does not tell where the last 90 days begin. Wait for it, or set START_BLOCK`,
    );
  // Ponder never becomes ready from a start block above the head.
  const wanted = given ?? Math.max(0, head - WINDOW_BLOCKS);
  const startBlock = Math.min(wanted, head);
  const prefix = prefixOf(settings, history, turn);
  const schema = `${prefix}_${startBlock}`;
  if (history !== null) await expectRows(db, history);
  const founding = await foundingAddresses(db, settings, history);
  await inTransaction(db, async (client) => {
    // Two processes that begin at other heads would each make one, of other start blocks.
    await client.query("select pg_advisory_xact_lock(hashtext('indexer.create ' || $1))", [prefix]);
    const made = await findSchema(client, prefix);
    if (made !== null) throw new Error(`Another process has just begun ${made.schema}, which these settings share`);
    await client.query(`create schema ${pg.escapeIdentifier(schema)};
      set local search_path to ${pg.escapeIdentifier(schema)}; ${OWN_ADDRESS_TABLE}`);
    await addOwnAddresses(client, schema, founding);
  });
  return { schema, startBlock };
}
