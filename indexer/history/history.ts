import pg from "pg";
import type { PublicClient } from "viem";
import { MAIN_NETWORK, NETWORKS } from "../../api/platform/networks.ts";
import { type Head, readBlock } from "../chain.ts";
import { ROWS_VERSION } from "../rows-version.ts";
import type { IndexerSettings } from "../settings.ts";

const { chainId: CHAIN_ID } = NETWORKS[MAIN_NETWORK];
/** A node whose head is older than this is behind the chain; Base makes a block every 2 seconds. */
const FRESH_SECONDS = 60;
/** Ponder considers a Base block final once this many have followed. */
const FINAL_AFTER_BLOCKS = 30;

/** The history cannot be used: a setting or the file is wrong, and no restart will fix it. */
export class UnfitHistoryError extends Error {
  override readonly name = "UnfitHistoryError";
}

/** A transfer of the history that identifies its chain. */
export interface Mark {
  readonly block: number;
  readonly time: number;
  readonly transaction: string;
}

/** The rows of the index up to `lastBlock`, made by `npm run index:preload`, in their own schema. */
export interface History {
  readonly schema: string;
  /** A hash of everything the rows follow from. */
  readonly id: string;
  readonly chainId: number;
  /** The addresses that it leaves out, in lower case. */
  readonly ownAddresses: readonly string[];
  readonly scope: IndexerSettings["scope"];
  readonly firstBlock: number;
  readonly lastBlock: number;
  /** `ROWS_VERSION` of its rows. */
  readonly rowsVersion: number;
  /** The first and the last transfer of the files. */
  readonly marks: readonly [Mark, Mark];
  readonly transfers: number;
}

export const HISTORY_TABLE = `create table history (id text primary key, chain_id int not null, own_addresses text[] not null,
  scope text not null, first_block int not null, last_block int not null, rows_version int not null, marks jsonb not null,
  transfers int8 not null, made_at timestamptz not null default now())`;

/** @throws UnfitHistoryError if there is none with this name. */
export async function readHistory(db: Pick<pg.Client, "query">, schema: string): Promise<History> {
  const table = `${pg.escapeIdentifier(schema)}.history`;
  const found = await db.query("select to_regclass($1) is not null as exists", [table]);
  if (!found.rows[0]?.exists)
    throw new UnfitHistoryError(
      `INDEX_HISTORY is wrong: this database has no history "${schema}". Create it with npm run index:preload`,
    );
  const { rows } = await db.query<Omit<History, "schema">>(
    `select id, chain_id as "chainId", own_addresses as "ownAddresses", scope, first_block as "firstBlock",
      last_block as "lastBlock", rows_version as "rowsVersion", marks, transfers::float8 from ${table}`,
  );
  const [row] = rows;
  if (row === undefined) throw new UnfitHistoryError(`The history "${schema}" is empty. Recreate it.`);
  return { schema, ...row };
}

/**
 * An index that takes a history over has its rows from then on.
 * @throws UnfitHistoryError if that has happened
 */
export async function expectRows(db: Pick<pg.Client, "query">, { schema }: Pick<History, "schema">): Promise<void> {
  const { rows } = await db.query("select to_regclass($1) is not null as there", [
    `${pg.escapeIdentifier(schema)}.wallet_day`,
  ]);
  if (rows[0]?.there === true) return;
  throw new UnfitHistoryError(
    `An index has taken the rows of the history "${schema}", and another one needs them. Recreate it from its files with npm run index:preload`,
  );
}

/** @throws UnfitHistoryError if the history was made for other settings. */
export function expectFit(
  { schema, chainId, scope, firstBlock, rowsVersion }: History,
  wanted: Pick<IndexerSettings, "scope" | "startBlock">,
): void {
  const { startBlock } = wanted;
  const reasons = [
    chainId !== CHAIN_ID && `it is for chain ${chainId}, but the index is for chain ${CHAIN_ID}`,
    scope !== wanted.scope && `its scope is ${scope}, but INDEX_SCOPE is ${wanted.scope}`,
    startBlock !== null &&
      firstBlock !== startBlock &&
      `it starts at block ${firstBlock}, but START_BLOCK is ${startBlock}`,
    rowsVersion !== ROWS_VERSION &&
      `its rows are of version ${rowsVersion}, but this release's are of version ${ROWS_VERSION}`,
  ].filter((reason) => reason !== false);
  if (reasons.length > 0)
    throw new UnfitHistoryError(
      `The history "${schema}" does not match: ${reasons.join("; ")}. Recreate it with npm run index:preload`,
    );
}

/** Null while the node does not return the block, which says nothing of its chain. */
async function isOnChain(chain: PublicClient, { block, time, transaction }: Mark): Promise<boolean | null> {
  const found = await readBlock(chain, block);
  return found && found.timestamp === time && found.transactions.some((hash) => hash === transaction);
}

/**
 * Whether the history's last block is final on the node's chain: false while the node is late.
 * @throws UnfitHistoryError if the history belongs to another chain than the node's.
 */
export async function isFinalOn(chain: PublicClient, head: Head, history: History): Promise<boolean> {
  const { marks, lastBlock, schema } = history;
  const isFresh = head.timestamp >= Date.now() / 1000 - FRESH_SECONDS;
  if (head.number < lastBlock && isFresh)
    throw new UnfitHistoryError(
      `The history "${schema}" goes to block ${lastBlock}, but the node's head is ${head.number}: it is from a different chain`,
    );
  for (const mark of marks) {
    const isThere = mark.block > head.number ? null : await isOnChain(chain, mark);
    if (isThere === null) return false;
    if (isThere) continue;
    throw new UnfitHistoryError(
      `The history "${schema}" is not from the node's chain: block ${mark.block} does not have time ${mark.time} and transaction ${mark.transaction}`,
    );
  }
  return head.number >= lastBlock + FINAL_AFTER_BLOCKS;
}
