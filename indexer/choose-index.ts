import { createHash } from "node:crypto";
import pg from "pg";
import { expectRows, type History, UnfitHistoryError } from "./history/history.ts";
import type { IndexLock } from "./index-lock.ts";
import { ROWS_VERSION } from "./rows-version.ts";
import { type Deployment, findIndexes } from "./schemas.ts";
import type { IndexerSettings } from "./settings.ts";

const WINDOW_BLOCKS = (90 * 86_400) / 2;

/** An index's name without its start block: a hash of everything that decides its rows, but for the chain. */
export function nameOf(settings: IndexerSettings, history: History | null): string {
  const { viewsSchema, scope, startBlock, ownAddresses, escrows, escrowStartBlock } = settings;
  const followed = escrows.length === 0 ? [] : [escrows, escrowStartBlock];
  const key = JSON.stringify([ROWS_VERSION, scope, startBlock, history?.id ?? null, ownAddresses, followed]);
  return `${viewsSchema}_${createHash("sha256").update(key).digest("hex").slice(0, 8)}`;
}

interface Start {
  readonly head: number;
  /** Whether the node still reads the chain, so that its head is not the chain's. Asked only for a new index. */
  readonly isSyncing: () => Promise<boolean>;
  readonly history: History | null;
}

/**
 * The index of this name: the one that is there, else a new, empty one. The start block is chosen once and read from the
 * schema's name afterwards, so a restart does not move it with the head.
 * @param session of the index's lock
 */
export async function chooseIndex(
  { session }: Pick<IndexLock, "session">,
  index: string,
  { startBlock: wanted, start }: { readonly startBlock: number | null; readonly start: Start },
): Promise<Deployment> {
  const found = (await findIndexes(session)).find((one) => one.index === index);
  if (found !== undefined) return found;
  const { head, isSyncing, history } = start;
  if (history !== null) await expectRows(session, history);
  const given = history?.firstBlock ?? wanted;
  if (given === null && (await isSyncing()))
    throw new Error(
      `The node still syncs, so that its newest block, ${head}, does not tell where the last 90 days begin. Wait for it, or set START_BLOCK`,
    );
  // Ponder never becomes ready from a start block above the head.
  const startBlock = Math.min(given ?? Math.max(0, head - WINDOW_BLOCKS), head);
  const schema = `${index}_${startBlock}`;
  await session.query(`create schema ${pg.escapeIdentifier(schema)}`);
  return { index, schema, startBlock };
}

/** @throws UnfitHistoryError if a history leaves out other addresses than these settings do */
export function expectOwnAddresses({ schema, ownAddresses }: History, settings: IndexerSettings): void {
  const [made, wanted] = [ownAddresses.toSorted().join(", "), settings.ownAddresses.join(", ")];
  if (made !== wanted)
    throw new UnfitHistoryError(
      `The history "${schema}" leaves out ${made}, but PAY_TO_ADDRESS, OWN_ADDRESSES, and ESCROW_ADDRESSES name ${wanted}. Recreate it with npm run index:preload`,
    );
}
