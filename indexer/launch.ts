import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import type { Logger } from "pino";
import type { PublicClient } from "viem";
import { connectChain, type Head, isSyncing, readHead, WrongChainError } from "./chain.ts";
import { chooseIndex, expectOwnAddresses, nameOf } from "./choose-index.ts";
import { dropIndexes, dropUnlessUsed } from "./drop.ts";
import { expectFit, isFinalOn, readHistory, UnfitHistoryError } from "./history/history.ts";
import { endWriters, type IndexLock, takeLock } from "./index-lock.ts";
import { withOperators } from "./operators.ts";
import { closePonder, type PonderPlan, startPonder } from "./ponder-process.ts";
import { prune, refetchPruned } from "./prune.ts";
import { OtherChainError, rememberFirstBlock, whyNotSameChain } from "./same-chain.ts";
import { ponderSchemas } from "./schemas.ts";
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
/** The first time comes soon, so that an indexer which restarts often prunes, too. */
const FIRST_PRUNE_MS = 60_000;

interface Launch {
  readonly settings: IndexerSettings;
  readonly db: pg.Pool;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * Keeps the index until `signal` aborts; when the promise settles, Ponder has ended. Ponder exits with 1 and 75 for temporary
 * reasons, so every start first checks that the index and the chain still belong together.
 * @throws WrongChainError if the node does not serve Base, OtherChainError if it serves another chain than the index was
 * made from, UnfitHistoryError if the history does not fit these settings and this chain.
 */
export async function runIndexer(settings: IndexerSettings, log: Logger, signal: AbortSignal): Promise<void> {
  const db = new pg.Pool({ connectionString: settings.databaseUrl, max: 3, application_name: "indexer_launcher" });
  db.on("error", (error) => log.warn({ err: error }, "a database connection was lost"));
  try {
    await keepRunning({ settings, db, log, signal });
  } finally {
    await db.end();
  }
}

const LASTING = [WrongChainError, OtherChainError, UnfitHistoryError];

/** Whether only the operator can end this. */
export const isLasting = (error: unknown): error is Error => LASTING.some((lasting) => error instanceof lasting);

/** Why a run has ended, or has not begun. */
interface Outcome {
  readonly reason?: string;
  /** Another indexer has the index. */
  readonly isLocked?: boolean;
  readonly err?: unknown;
}

async function keepRunning(launch: Launch): Promise<void> {
  const { log, signal } = launch;
  let wasLocked = false;
  for (let failures = 0; !signal.aborted; ) {
    const started = Date.now();
    const outcome: Outcome = await runOnce(launch).catch((error: unknown) => {
      if (isLasting(error)) throw error;
      return { err: error };
    });
    if (signal.aborted) return;
    if (Date.now() - started > STEADY_MS) failures = 0;
    const isLocked = outcome.isLocked === true;
    const retryMs = isLocked ? LOCKED_MS : Math.min(LAST_RESTART_MS, FIRST_RESTART_MS * 2 ** failures);
    if (!isLocked) failures += 1;
    if (!isLocked) log.warn({ ...outcome, retryMs }, "the indexer stopped and is restarting");
    else if (!wasLocked) log.info({ reason: outcome.reason }, "another indexer has the index; waiting for its end");
    wasLocked = isLocked;
    await wait(retryMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Checks everything that must hold, takes the index's lock, and runs Ponder until it ends, or until the lock is lost. */
async function runOnce(launch: Launch): Promise<Outcome> {
  const found = await compare(launch);
  if ("reason" in found) return found;
  const { settings, history } = found;
  const index = nameOf(settings, history);
  const lock = await takeLock(settings.databaseUrl, index);
  if (lock === null) return { reason: `another indexer holds ${index}`, isLocked: true };
  try {
    return await runPonder(launch, lock, await prepare(launch, lock, { ...found, index }));
  } finally {
    await lock.release();
  }
}

interface Compared {
  /** With the operators. */
  readonly settings: IndexerSettings;
  readonly history: PonderPlan["history"];
  readonly chain: PublicClient;
  readonly head: Head;
}

/** What the node and the database say before a start; a reason while nothing can be decided. */
async function compare(launch: Launch): Promise<Compared | { readonly reason: string }> {
  const { db } = launch;
  const chain = connectChain(launch.settings.rpcUrl);
  const head = await readHead(chain);
  const reason = await whyNotComparable(launch, { client: chain, head });
  if (reason !== null) return { reason };
  const settings = await withOperators(launch.settings, chain, db);
  const history = settings.historySchema === null ? null : await readHistory(db, settings.historySchema);
  if (history !== null) {
    expectFit(history, settings);
    expectOwnAddresses(history, settings);
    if (!(await isFinalOn(chain, head, history)))
      return { reason: "the history's last block is not final on the node" };
  }
  return { settings, history, chain, head };
}

/** Why the index cannot be compared with the chain now; null if both belong together, or nothing is left of the index. */
async function whyNotComparable({ settings, db, log, signal }: Launch, node: { client: PublicClient; head: Head }) {
  const patience = {
    overMs: settings.otherChainAfterSeconds * 1000,
    wait: (ms: number) => wait(ms, undefined, { signal }),
  };
  try {
    return await whyNotSameChain(db, node, patience);
  } catch (error) {
    if (!(error instanceof OtherChainError) || settings.otherChain === "stop") throw error;
    const schemas = await dropIndexes(db);
    log.warn(
      { schemas, head: node.head.number },
      "the index was built from a different chain than the node's and was dropped",
    );
    return null;
  }
}

/** Only the holder of the lock does this: it makes the index ready for a Ponder of its own. */
async function prepare(
  { db, log }: Launch,
  lock: IndexLock,
  { index, settings, history, chain, head }: Compared & { readonly index: string },
): Promise<PonderPlan> {
  const deployment = await chooseIndex(lock, index, {
    startBlock: settings.startBlock,
    start: { head: head.number, isSyncing: () => isSyncing(chain), history },
  });
  const readsFrom = history === null ? deployment.startBlock : history.lastBlock + 1;
  await rememberFirstBlock(db, chain);
  await refetchPruned(lock.session, deployment, readsFrom);
  await openToReaders(db, settings.viewsSchema);
  await endWriters(lock, deployment.schema);
  await unlockPonder(lock, deployment.schema);
  // A local chain is small; OTHER_CHAIN=drop suits no other.
  const isNew = (await shownSchema(db, settings.viewsSchema)) !== deployment.schema;
  if (settings.scope === "full" && settings.otherChain === "stop" && isNew)
    log.warn(
      { blocks: head.number - readsFrom },
      "scope full reads every transfer of USDC: on Base, 13 to 26 GB a day",
    );
  return { settings, deployment, history, readsFrom, holder: lock.holder };
}

/** Ponder would wait for 25 seconds after the last heartbeat of one that was killed. */
async function unlockPonder({ session }: IndexLock, schema: string): Promise<void> {
  if (!(await ponderSchemas(session)).includes(schema)) return;
  await session.query(
    `update ${pg.escapeIdentifier(schema)}._ponder_meta set value = jsonb_set(value, '{is_locked}', '0')`,
  );
}

async function runPonder(launch: Launch, lock: IndexLock, plan: PonderPlan): Promise<Outcome> {
  const { log, signal } = launch;
  signal.throwIfAborted();
  lock.lost.throwIfAborted();
  const startedAt = Date.now();
  const ponder = startPonder(plan);
  const closed = once(ponder, "exit");
  const stop = () => closePonder(ponder);
  const kill = () => ponder.kill("SIGKILL");
  signal.addEventListener("abort", stop);
  lock.lost.addEventListener("abort", kill);
  log.info({ ...plan.deployment, ponderPid: ponder.pid }, "ponder started");
  const over = new AbortController();
  const care = Promise.all([present(launch, plan, { startedAt, over: over.signal }), keepPruning(launch, over.signal)]);
  try {
    const [code, killedBy]: unknown[] = await closed;
    return { ...{ code, signal: killedBy }, ...(lock.lost.aborted ? { reason: "the index's lock was lost" } : {}) };
  } finally {
    over.abort();
    signal.removeEventListener("abort", stop);
    lock.lost.removeEventListener("abort", kill);
    await care.catch((error: unknown) => {
      if (!over.signal.aborted) log.warn({ err: error }, "the views are not kept");
    });
  }
}

interface Run {
  /** By this clock, in milliseconds: what an earlier process left in the database is older. */
  readonly startedAt: number;
  /** Aborts when Ponder has ended. */
  readonly over: AbortSignal;
}

/**
 * Waits until Ponder has filled the index, then shows it to readers and drops what they saw before, as soon as no indexer
 * and no reader uses that any more. The database may restart meanwhile.
 */
async function present({ db, log }: Launch, { deployment, settings }: PonderPlan, run: Run): Promise<void> {
  const { viewsSchema } = settings;
  const { over, startedAt } = run;
  const insist = async <T>(work: () => Promise<T | null>, everyMs: number): Promise<T> => {
    for (;;) {
      const done = await work().catch((error: unknown) => {
        if (!over.aborted) log.warn({ err: error }, "the index could not be made available to readers");
        return null;
      });
      if (done !== null) return done;
      await wait(everyMs, undefined, { signal: over });
    }
  };
  const { schema } = deployment;
  await insist(async () => (await isReady(db, schema, startedAt)) || null, READY_POLL_MS);
  await insist(async () => (await mayBeShown(db, deployment, viewsSchema)) || null, READY_POLL_MS);
  const before = await insist(
    async () => ({ shown: await showIndex(db, deployment, { viewsSchema, signal: over }) }),
    DROP_MS,
  );
  log.info({ ...deployment, afterMs: Date.now() - startedAt, before: before.shown }, "index ready");
  await insist(async () => {
    for (const replaced of await replacedBy(db, deployment, viewsSchema))
      if (await dropUnlessUsed(db, replaced))
        log.info({ schema, dropped: replaced.schema }, "a replaced index is dropped");
    return null;
  }, DROP_MS);
}

/** Prunes Ponder's copy of the chain now and then. A failure is logged: the next time may do. */
async function keepPruning({ settings, db, log }: Launch, over: AbortSignal): Promise<void> {
  const everyMs = settings.pruneSeconds * 1000;
  if (everyMs === 0) return;
  for (let nextMs = Math.min(FIRST_PRUNE_MS, everyMs); ; nextMs = everyMs) {
    await wait(nextMs, undefined, { signal: over });
    await prune(db, undefined, over).then(
      (pruned) => log.info(pruned, "pruned ponder_sync"),
      (error: unknown) => log.warn({ err: error }, "ponder_sync could not be pruned"),
    );
  }
}
