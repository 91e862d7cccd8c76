import { createHash } from "node:crypto";
import pg from "pg";
import { expectRows, type History } from "./history/history.ts";
import { WINDOW_BLOCKS } from "./ledger.ts";
import { ROWS_VERSION } from "./rows-version.ts";
import { type Deployment, findIndexes, type Queryable } from "./schemas.ts";
import type { IndexerSettings } from "./settings.ts";

/** An index's name without its start block: a hash of everything that decides its rows, but for the chain. */
export function nameOf(settings: IndexerSettings, history: History | null): string {
  const { viewsSchema, scope, startBlock, ownAddresses, escrows, escrowStartBlock } = settings;
  const followed = escrows.length === 0 ? [] : [escrows, escrowStartBlock];
  const key = JSON.stringify([ROWS_VERSION, scope, startBlock, history?.id ?? null, ownAddresses, followed]);
  return `${viewsSchema}_${createHash("sha256").update(key).digest("hex").slice(0, 8)}`;
}

export interface Start {
  /** That of the settings. */
  readonly startBlock: number | null;
  readonly head: number;
  /** Whether the node's head is not yet the chain's. Asked only for a new index. */
  readonly isSyncing: () => Promise<boolean>;
  readonly history: History | null;
}

/**
 * The index of this name: the one that is there, else a new, empty one. The start block is chosen once and read from the
 * schema's name afterwards, so a restart does not move it with the head.
 * @param session of the index's lock
 */
export async function chooseIndex(session: Queryable, index: string, start: Start): Promise<Deployment> {
  const found = (await findIndexes(session)).find((one) => one.index === index);
  if (found !== undefined) return found;
  const { head, isSyncing, history } = start;
  if (history !== null) await expectRows(session, history);
  const given = history?.firstBlock ?? start.startBlock;
  if (given === null && (await isSyncing()))
    throw new Error(
      `The node still syncs, so its newest block, ${head}, does not tell where the last 90 days begin. Wait for it, or set START_BLOCK`,
    );
  // Ponder never becomes ready from a start block above the head.
  const startBlock = Math.min(given ?? Math.max(0, head - WINDOW_BLOCKS), head);
  const schema = `${index}_${startBlock}`;
  await session.query(`create schema ${pg.escapeIdentifier(schema)}`);
  return { index, schema, startBlock };
}
