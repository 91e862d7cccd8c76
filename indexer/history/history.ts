import pg from "pg";
import type { PublicClient } from "viem";
import type { Header } from "../../api/platform/chain/log-answers.ts";
import { readBlock } from "../chain.ts";
import { LastingError, type Scope } from "../ledger.ts";
import { exists, type Queryable } from "../schemas.ts";
import type { IndexerSettings } from "../settings.ts";
import { ROWS_VERSION } from "./rows.ts";

/** Ponder considers a Base block final once this many have followed. */
const FINAL_AFTER_BLOCKS = 30;

/** A transfer of the history that identifies its chain. */
export interface Mark {
  readonly block: number;
  readonly time: number;
  readonly transaction: string;
}

/** The index's rows up to `lastBlock`, made by `npm run index:preload`, in their own schema. */
export interface History {
  readonly schema: string;
  /** The id of the run of `npm run index:preload`. */
  readonly id: string;
  readonly ownAddresses: readonly string[];
  readonly scope: Scope;
  readonly firstBlock: number;
  readonly lastBlock: number;
  readonly rowsVersion: number;
  /** The first and the last transfer of the files. */
  readonly marks: readonly [Mark, Mark];
}

/** @throws LastingError if there is no history with this name */
export async function readHistory(db: Queryable, schema: string): Promise<History> {
  const table = `${pg.escapeIdentifier(schema)}.history`;
  const { rows } = (await exists(db, table))
    ? await db.query<Pick<History, "id"> & { facts: Omit<History, "schema" | "id"> }>(`select id, facts from ${table}`)
    : { rows: [] };
  const [row] = rows;
  if (row !== undefined) return { schema, id: row.id, ...row.facts };
  const missing = `this database has no history "${schema}"`;
  throw new LastingError(`INDEX_HISTORY is wrong: ${missing}. Create it with npm run index:preload`);
}

/** @throws LastingError if an index has taken over the history's rows */
export async function expectRows(db: Queryable, { schema }: History): Promise<void> {
  if (await exists(db, `${pg.escapeIdentifier(schema)}.wallet_day`)) return;
  throw new LastingError(
    `An index has taken the rows of the history "${schema}", and another index needs them. Recreate it from its files with npm run index:preload`,
  );
}

/** @throws LastingError if it was made for other settings */
export function expectFit(history: History, wanted: IndexerSettings): void {
  const { scope, firstBlock, rowsVersion } = history;
  const [made, own] = [history.ownAddresses.join(", "), wanted.ownAddresses.join(", ")];
  const isLate = wanted.startBlock !== null && firstBlock !== wanted.startBlock;
  const reasons = [
    scope !== wanted.scope && `its scope is ${scope}, but INDEX_SCOPE is ${wanted.scope}`,
    isLate && `it starts at block ${firstBlock}, but START_BLOCK is ${wanted.startBlock}`,
    rowsVersion !== ROWS_VERSION &&
      `its rows have version ${rowsVersion}, but this release has version ${ROWS_VERSION}`,
    made !== own && `it leaves out ${made}, but PAY_TO_ADDRESS, OWN_ADDRESSES, and ESCROW_ADDRESSES are ${own}`,
  ].filter((reason) => reason !== false);
  if (reasons.length === 0) return;
  const why = `The history "${history.schema}" does not match: ${reasons.join("; ")}`;
  throw new LastingError(`${why}. Recreate it with npm run index:preload`);
}

/**
 * Returns whether the history's last block is final on the node's chain. It is false while the node is behind.
 * @throws LastingError if the history is from another chain
 */
export async function isFinalOn(chain: PublicClient, head: Pick<Header, "block">, history: History): Promise<boolean> {
  const { marks, lastBlock } = history;
  for (const { block, time, transaction } of marks) {
    const found = await readBlock(chain, block);
    if (found === null) return false;
    if (found.time === time && found.transactions.includes(transaction)) continue;
    throw new LastingError(
      `The history "${history.schema}" is not from the node's chain: block ${block} does not have time ${time} and transaction ${transaction}`,
    );
  }
  return head.block >= lastBlock + FINAL_AFTER_BLOCKS;
}
