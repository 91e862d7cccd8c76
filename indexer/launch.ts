import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import type { Logger } from "pino";
import { releaseProblem } from "../api/platform/db/connection.ts";
import { connectChain, readHead } from "./chain.ts";
import { chooseIndex, dropUnlessUsed, nameOf } from "./choose-index.ts";
import { expectFit, isFinalOn, readHistory } from "./history/history.ts";
import { endWriters, type IndexLock, takeLock } from "./index-lock.ts";
import { LastingError } from "./ledger.ts";
import { withOperators } from "./operators.ts";
import { closePonder, type PonderPlan, startPonder } from "./ponder-process.ts";
import { prune, refetchPruned } from "./prune.ts";
import { whyNotSameChain } from "./same-chain.ts";
import { exists, findIndexes } from "./schemas.ts";
import type { IndexerSettings } from "./settings.ts";
import { isAbandoned, isReady, mayBeShown, openToReaders, showIndex } from "./views.ts";

const RETRY_MS = 1_000;
const READY_POLL_MS = 100;
const DROP_MS = 5_000;
/** Short, so that an indexer that restarts often also prunes. */
const FIRST_PRUNE_MS = 60_000;
const PRUNE_MS = 600_000;
const STEP_MS = 1_000;

interface Launch {
  readonly settings: IndexerSettings;
  readonly db: pg.Pool;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

interface Outcome {
  readonly reason?: string;
  /** Another indexer has the index. */
  readonly isLocked?: boolean;
  readonly err?: unknown;
}

/**
 * Maintains the index until `signal` aborts. When the promise settles, Ponder has ended. Ponder also exits for temporary
 * reasons, so every start first checks that the index and the chain still match.
 * @throws LastingError
 */
export async function runIndexer(settings: IndexerSettings, log: Logger, signal: AbortSignal): Promise<void> {
  const db = new pg.Pool({ connectionString: settings.databaseUrl, max: 3, application_name: "indexer_launcher" });
  db.on("error", (error) => log.warn({ err: error }, "a database connection was lost"));
  let wasLocked = false;
  try {
    while (!signal.aborted) {
      const outcome: Outcome = await runOnce({ settings, db, log, signal }).catch((error: unknown) => {
        if (error instanceof LastingError) throw error;
        return { err: error };
      });
      if (signal.aborted) return;
      const isLocked = outcome.isLocked === true;
      if (!isLocked) log.warn(outcome, "the indexer stopped and is restarting");
      else if (!wasLocked) log.info({ reason: outcome.reason }, "another indexer has the index; waiting until it ends");
      wasLocked = isLocked;
      await wait(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    await db.end();
  }
}

/** Checks the preconditions, takes the index's lock, and runs Ponder until it ends or the lock is lost. */
async function runOnce(launch: Launch): Promise<Outcome> {
  const { db } = launch;
  const old = await releaseProblem(db);
  if (old !== null) throw new LastingError(old);
  if (await mayChangeRecords(db)) throw new LastingError(POWERFUL);
  const { rpcUrls } = launch.settings;
  const [client, head] = [connectChain(...rpcUrls), await readHead(rpcUrls)];
  const reason = await whyNotSameChain(db, client, head);
  if (reason !== null) return { reason };
  const settings = await withOperators(launch.settings, client);
  const history = settings.historySchema === null ? null : await readHistory(db, settings.historySchema);
  if (history !== null) expectFit(history, settings);
  if (history !== null && !(await isFinalOn(client, head, history)))
    return { reason: "the history's last block is not final on the node" };
  const index = nameOf(settings, history);
  const lock = await takeLock(settings.databaseUrl, index);
  if (lock === null) return { reason: `another indexer holds ${index}`, isLocked: true };
  try {
    const { session, holder } = lock;
    const deployment = await chooseIndex(session, index, { startBlock: settings.startBlock, head, history });
    const readsFrom = history === null ? deployment.startBlock : history.lastBlock + 1;
    await refetchPruned(session, deployment, readsFrom);
    await openToReaders(db, settings.viewsSchema);
    await endWriters(lock, deployment.schema);
    // Ponder would wait until 25 seconds after the last heartbeat of a killed one.
    const meta = `${pg.escapeIdentifier(deployment.schema)}._ponder_meta`;
    if (await exists(session, meta))
      await session.query(`update ${meta} set value = jsonb_set(value, '{is_locked}', '0')`);
    return await runPonder(launch, lock, { settings, deployment, history, readsFrom, holder });
  } finally {
    await lock.release();
  }
}

const POWERFUL =
  "the role in DATABASE_URL can read or change certificates. Use a login role that is a member of only trust_indexer: CREATE ROLE trust_index LOGIN PASSWORD '…' IN ROLE trust_indexer.";

/** Returns whether this role can access the service's tables. It must not, because the indexer runs many packages' code. */
async function mayChangeRecords(db: pg.Pool): Promise<boolean> {
  const { rows } = await db.query<{ may: boolean | null }>(
    "select has_table_privilege(to_regclass('public.certificate')::oid, 'select, insert, update, delete, truncate') as may",
  );
  return rows[0]?.may === true;
}

async function runPonder(launch: Launch, { lost }: IndexLock, plan: PonderPlan): Promise<Outcome> {
  const { log, signal } = launch;
  signal.throwIfAborted();
  lost.throwIfAborted();
  const ponder = startPonder(plan);
  const closed = once(ponder, "exit");
  const stop = () => closePonder(ponder);
  signal.addEventListener("abort", stop);
  lost.addEventListener("abort", () => ponder.kill("SIGKILL"));
  log.info({ ...plan.deployment, ponderPid: ponder.pid }, "ponder started");
  const over = new AbortController();
  const care = Promise.all([present(launch, plan, over.signal), keepPruning(launch, over.signal)]);
  try {
    const [code, killedBy]: unknown[] = await closed;
    return { ...{ code, signal: killedBy }, ...(lost.aborted ? { reason: "the index's lock was lost" } : {}) };
  } finally {
    over.abort();
    signal.removeEventListener("abort", stop);
    // It rejects because it was aborted. It has logged failures.
    await care.catch(() => undefined);
  }
}

/**
 * Waits until Ponder has filled the index, then shows it to readers, and drops other indexes that have been unused for an
 * hour. The database may restart meanwhile. `over` aborts when Ponder has ended.
 */
async function present({ db, log }: Launch, { deployment, settings }: PonderPlan, over: AbortSignal): Promise<void> {
  const { viewsSchema } = settings;
  // Heartbeats of an earlier process are older.
  const startedAt = Date.now();
  const failed = (err: unknown): false => {
    if (!over.aborted) log.warn({ err }, "the index could not be made available to readers");
    return false;
  };
  const insist = async (everyMs: number, work: () => Promise<boolean>): Promise<void> => {
    while (!(await work().catch(failed))) await wait(everyMs, undefined, { signal: over });
  };
  await insist(READY_POLL_MS, () => isReady(db, deployment.schema, startedAt));
  await insist(READY_POLL_MS, () => mayBeShown(db, deployment, viewsSchema));
  await insist(READY_POLL_MS, () => showIndex(db, deployment, viewsSchema));
  log.info({ ...deployment, afterMs: Date.now() - startedAt }, "index ready");
  await insist(DROP_MS, async () => {
    for (const other of await findIndexes(db, viewsSchema))
      if (other.schema !== deployment.schema && (await isAbandoned(db, other)) && (await dropUnlessUsed(db, other)))
        log.info({ schema: deployment.schema, dropped: other.schema }, "dropped a replaced index");
    return false;
  });
}

/** Prunes Ponder's copy of the chain regularly. A failure is logged, and the next run tries again. */
async function keepPruning({ db, log }: Launch, over: AbortSignal): Promise<void> {
  for (let nextMs = FIRST_PRUNE_MS; ; ) {
    await wait(nextMs, undefined, { signal: over });
    nextMs = PRUNE_MS;
    try {
      const { isMore, ...pruned } = await prune(db);
      log.info(pruned, "pruned ponder_sync");
      if (isMore) nextMs = STEP_MS;
    } catch (error) {
      log.warn({ err: error }, "ponder_sync could not be pruned");
    }
  }
}
