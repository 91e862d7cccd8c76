import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import type { Logger } from "pino";
import type { PublicClient } from "viem";
import { releaseProblem } from "../api/platform/db/connection.ts";
import { connectChain, type Head, isSyncing, readHead, WrongChainError } from "./chain.ts";
import { chooseIndex, nameOf } from "./choose-index.ts";
import { dropIndexes, dropUnlessUsed } from "./drop.ts";
import { expectFit, isFinalOn, readHistory, UnfitHistoryError } from "./history/history.ts";
import { endWriters, type IndexLock, takeLock } from "./index-lock.ts";
import { withOperators } from "./operators.ts";
import { closePonder, type PonderPlan, startPonder } from "./ponder-process.ts";
import { prune, refetchPruned } from "./prune.ts";
import { OtherChainError, rememberFirstBlock, whyNotSameChain } from "./same-chain.ts";
import { exists } from "./schemas.ts";
import type { IndexerSettings } from "./settings.ts";
import { isReady, mayBeShown, openToReaders, replacedBy, showIndex, shownSchema } from "./views.ts";

const FIRST_RESTART_MS = 500;
const LAST_RESTART_MS = 30_000;
/** After a run this long the start counts as successful, and the next restart is quick again. */
const STEADY_MS = 60_000;
/** How often to look whether another indexer has let go of the index. */
const LOCKED_MS = 1_000;
const READY_POLL_MS = 100;
/** How often to look whether an index that was replaced can be dropped. */
const DROP_MS = 5_000;
/** Soon, so that an indexer which restarts often prunes, too. */
const FIRST_PRUNE_MS = 60_000;
/** Until the next step, while there is more to prune. */
const STEP_MS = 1_000;

interface Launch {
  readonly settings: IndexerSettings;
  readonly db: pg.Pool;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

class OldPostgresError extends Error {
  override readonly name = "OldPostgresError";
}

const LASTING = [WrongChainError, OtherChainError, UnfitHistoryError, OldPostgresError];

/** Whether only the operator can end this. */
export const isLasting = (error: unknown): error is Error => LASTING.some((lasting) => error instanceof lasting);

/** Why a run has ended, or has not begun. */
interface Outcome {
  readonly reason?: string;
  /** Another indexer has the index. */
  readonly isLocked?: boolean;
  readonly err?: unknown;
}

/**
 * Keeps the index until `signal` aborts; when the promise settles, Ponder has ended. Ponder exits for temporary reasons, too,
 * so every start first checks that the index and the chain still belong together.
 * @throws an error that `isLasting`
 */
export async function runIndexer(settings: IndexerSettings, log: Logger, signal: AbortSignal): Promise<void> {
  const db = new pg.Pool({ connectionString: settings.databaseUrl, max: 3, application_name: "indexer_launcher" });
  db.on("error", (error) => log.warn({ err: error }, "a database connection was lost"));
  let wasLocked = false;
  try {
    for (let failures = 0; !signal.aborted; ) {
      const started = Date.now();
      const outcome: Outcome = await runOnce({ settings, db, log, signal }).catch((error: unknown) => {
        if (isLasting(error)) throw error;
        return { err: error };
      });
      if (signal.aborted) return;
      if (Date.now() - started > STEADY_MS) failures = 0;
      const isLocked = outcome.isLocked === true;
      const retryMs = isLocked ? LOCKED_MS : Math.min(LAST_RESTART_MS, FIRST_RESTART_MS * 2 ** failures++);
      if (!isLocked) log.warn({ ...outcome, retryMs }, "the indexer stopped and is restarting");
      else if (!wasLocked) log.info({ reason: outcome.reason }, "another indexer has the index; waiting for its end");
      wasLocked = isLocked;
      await wait(retryMs, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    await db.end();
  }
}

/** Checks everything that must hold, takes the index's lock, and runs Ponder until it ends, or until the lock is lost. */
async function runOnce(launch: Launch): Promise<Outcome> {
  const { db } = launch;
  const old = await releaseProblem(db);
  if (old !== null) throw new OldPostgresError(old);
  const client = connectChain(...launch.settings.rpcUrls);
  await expectBase(launch.settings.rpcUrls);
  const node = { client, head: await readHead(client) };
  const reason = await whyNotComparable(launch, node);
  if (reason !== null) return { reason };
  const settings = await withOperators(launch.settings, client, db);
  const history = settings.historySchema === null ? null : await readHistory(db, settings.historySchema);
  if (history !== null) expectFit(history, settings);
  if (history !== null && !(await isFinalOn(client, node.head, history)))
    return { reason: "the history's last block is not final on the node" };
  const index = nameOf(settings, history);
  const lock = await takeLock(settings.databaseUrl, index);
  if (lock === null) return { reason: `another indexer holds ${index}`, isLocked: true };
  try {
    const plan = await prepare({ ...launch, settings }, node, { lock, index, history });
    return await runPonder(launch, lock, plan);
  } finally {
    await lock.release();
  }
}

/** Ponder asks all nodes: one of another chain must not be among them. One that does not answer is Ponder's to do without. */
async function expectBase(rpcUrls: readonly string[]): Promise<void> {
  const heads = await Promise.allSettled(rpcUrls.map((url) => readHead(connectChain(url))));
  for (const head of heads) if (head.status === "rejected" && head.reason instanceof WrongChainError) throw head.reason;
}

/** Why the index cannot be compared with the chain now; null if both belong together, or nothing is left of the index. */
async function whyNotComparable({ settings, db, log, signal }: Launch, node: ChainNode) {
  const overMs = settings.otherChainAfterSeconds * 1000;
  try {
    return await whyNotSameChain(db, node, { overMs, wait: (ms) => wait(ms, undefined, { signal }) });
  } catch (error) {
    if (!(error instanceof OtherChainError) || settings.otherChain === "stop") throw error;
    const facts = { schemas: await dropIndexes(db), head: node.head.number };
    log.warn(facts, "the index was built from a different chain than the node's and was dropped");
    return null;
  }
}

interface ChainNode {
  readonly client: PublicClient;
  readonly head: Head;
}

/** Makes the index ready for a Ponder of the lock's holder. */
async function prepare(
  { settings, db, log }: Launch,
  { client, head }: ChainNode,
  { lock, index, history }: Pick<PonderPlan, "history"> & { readonly lock: IndexLock; readonly index: string },
): Promise<PonderPlan> {
  const { session, holder } = lock;
  const start = { startBlock: settings.startBlock, head: head.number, isSyncing: () => isSyncing(client), history };
  const deployment = await chooseIndex(session, index, start);
  const readsFrom = history === null ? deployment.startBlock : history.lastBlock + 1;
  await rememberFirstBlock(db, client);
  await refetchPruned(session, deployment, readsFrom);
  await openToReaders(db, settings.viewsSchema);
  await endWriters(lock, deployment.schema);
  // Ponder would wait for 25 seconds after the last heartbeat of one that was killed.
  const meta = `${pg.escapeIdentifier(deployment.schema)}._ponder_meta`;
  if (await exists(session, meta))
    await session.query(`update ${meta} set value = jsonb_set(value, '{is_locked}', '0')`);
  // A local chain is small; OTHER_CHAIN=drop suits no other.
  const isNew = (await shownSchema(db, settings.viewsSchema)) !== deployment.schema;
  if (settings.scope === "full" && settings.otherChain === "stop" && isNew) {
    const facts = { blocks: head.number - readsFrom };
    log.warn(facts, "scope full reads every transfer of USDC: on Base, 13 to 26 GB a day");
  }
  return { settings, deployment, history, readsFrom, holder };
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
    // It rejects because it is over, and has logged what failed.
    await care.catch(() => undefined);
  }
}

/**
 * Waits until Ponder has filled the index, then shows it to readers and drops what they saw before, as soon as no indexer
 * and no reader uses that any more. The database may restart meanwhile.
 * @param over aborts when Ponder has ended
 */
async function present({ db, log }: Launch, { deployment, settings }: PonderPlan, over: AbortSignal): Promise<void> {
  const { viewsSchema } = settings;
  // What an earlier process left in the database is older.
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
    for (const replaced of await replacedBy(db, deployment, viewsSchema))
      if (await dropUnlessUsed(db, replaced))
        log.info({ schema: deployment.schema, dropped: replaced.schema }, "a replaced index is dropped");
    return false;
  });
}

/** Prunes Ponder's copy of the chain now and then. A failure is logged: the next time may do. */
async function keepPruning({ settings, db, log }: Launch, over: AbortSignal): Promise<void> {
  const everyMs = settings.pruneSeconds * 1000;
  if (everyMs === 0) return;
  for (let nextMs = Math.min(FIRST_PRUNE_MS, everyMs); ; ) {
    await wait(nextMs, undefined, { signal: over });
    nextMs = everyMs;
    try {
      const { isMore, ...pruned } = await prune(db);
      log.info(pruned, "pruned ponder_sync");
      if (isMore) nextMs = STEP_MS;
    } catch (error) {
      log.warn({ err: error }, "ponder_sync could not be pruned");
    }
  }
}
