import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import type { Logger } from "pino";
import { connectChain, readHead, WrongChainError } from "./chain.ts";
import { OtherColumnsError } from "./columns.ts";
import { clearLock, dropReplaced, dropUnlessBusy, isHeld, isReady, openToReaders } from "./deployment.ts";
import { UnfitHistoryError } from "./history/history.ts";
import { withOperators } from "./operators.ts";
import { OwnAddressError } from "./own-addresses.ts";
import { closePonder, type PonderPlan, startPonder } from "./ponder-process.ts";
import { keepPruning } from "./pruning.ts";
import { type Root, rootsOf } from "./roots.ts";
import { type ChainNode, OtherChainError, whyNotSameChain } from "./same-chain.ts";
import { dropIndexes } from "./schemas.ts";
import type { IndexerSettings } from "./settings.ts";
import { hasCaughtUp, showIndex, whyOvertaken } from "./succession.ts";
import { createTurns, type Turns } from "./turns.ts";

const FIRST_RESTART_MS = 500;
const LAST_RESTART_MS = 30_000;
/** After a run this long the start counts as successful, and the next restart is quick again. */
const STEADY_MS = 60_000;
const READY_POLL_MS = 250;
/** How often to look whether a newer release serves, and whether what was replaced can be dropped. */
const SUCCESSION_MS = 5_000;

interface Launch {
  readonly settings: IndexerSettings;
  readonly db: pg.Pool;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Roots start one after the other, so that one does not start on what another is about to drop. */
  readonly turns: Turns;
  /** Every Ponder that runs, with its end. */
  readonly running: Map<ChildProcess, Promise<unknown>>;
}

/**
 * Keeps the index: one Ponder for the payments, and one for the escrows if there are any, until `signal` aborts; when the
 * promise settles, each has ended. Ponder exits with 1 and 75 for temporary reasons, so every start first checks that the
 * index and the chain still belong together.
 * @throws WrongChainError if the node does not serve Base, OtherChainError if it serves another chain than the index was
 * made from, UnfitHistoryError if the history does not fit these settings and this chain, OwnAddressError or
 * OtherColumnsError if the index's rows do not fit the service's addresses or this release.
 */
export async function runIndexer(settings: IndexerSettings, log: Logger, signal: AbortSignal): Promise<void> {
  const db = new pg.Pool({ connectionString: settings.databaseUrl, max: 2, application_name: "indexer_launcher" });
  db.on("error", (error) => log.warn({ err: error }, "a database connection was lost"));
  const over = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  const launch = { settings, db, log, signal: until, turns: createTurns(), running: new Map() };
  const pruning = keepPruning({ settings, log, signal: until });
  const kept = rootsOf(settings).map((root) => keepRunning(launch, root).finally(() => over.abort()));
  try {
    const ends = await Promise.allSettled(kept);
    const failed = ends.find((end) => end.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  } finally {
    over.abort();
    await pruning;
    await db.end();
  }
}

/** The next Ponder starts so long after the one before at the latest. */
const SETTLES_MS = 20_000;

const LASTING = [WrongChainError, OtherChainError, UnfitHistoryError, OwnAddressError, OtherColumnsError];

/** Whether only the operator can end this. */
export const isLasting = (error: unknown): error is Error => LASTING.some((lasting) => error instanceof lasting);

async function keepRunning(launch: Launch, root: Root): Promise<void> {
  const { log, signal } = launch;
  for (let failures = 0; !signal.aborted; failures += 1) {
    const started = Date.now();
    const outcome = await runOnce(launch, root).catch((error: unknown) => {
      if (isLasting(error)) throw error;
      return { err: error };
    });
    if (signal.aborted) break;
    if (Date.now() - started > STEADY_MS) failures = 0;
    const retryMs = Math.min(LAST_RESTART_MS, FIRST_RESTART_MS * 2 ** failures);
    log.warn({ ...outcome, root: root.name, retryMs }, "the indexer stopped and is restarting");
    await wait(retryMs, undefined, { signal }).catch(() => undefined);
  }
}

async function runOnce(launch: Launch, root: Root): Promise<object> {
  const started = await launch.turns.take(async () => {
    const begun = await start(launch, root);
    if ("reason" in begun) return begun;
    launch.log.info({ ...begun.plan.deployment, ponderPid: begun.ponder.pid }, root.says.started);
    await hasSettled(launch, begun);
    return begun;
  });
  if ("reason" in started) return started;
  const { ponder, closed } = started;
  const stop = () => closePonder(ponder);
  launch.signal.addEventListener("abort", stop);
  if (launch.signal.aborted) stop();
  const over = new AbortController();
  const serving = serve(launch, { ...started, root }, { over: over.signal, stop });
  try {
    const [code, signal]: unknown[] = await closed;
    return { code, signal };
  } finally {
    over.abort();
    launch.signal.removeEventListener("abort", stop);
    await serving;
  }
}

interface Started {
  readonly ponder: ChildProcess;
  readonly closed: Promise<unknown[]>;
  readonly plan: PonderPlan;
  /** By this clock, in milliseconds: what an earlier process left in the database is older. */
  readonly startedAt: number;
}

/** Starts a root's Ponder once everything holds that must; a reason while nothing can be decided. */
async function start(launch: Launch, root: Root): Promise<Started | { readonly reason: string }> {
  const { db, log, running, signal } = launch;
  const stopped = { reason: "the indexer is being stopped" };
  if (signal.aborted) return stopped;
  const overtaken = await whyOvertaken(db, launch.settings.viewsSchema);
  if (overtaken !== null) return { reason: overtaken };
  const chain = connectChain(launch.settings.rpcUrl);
  const head = await readHead(chain);
  const reason = await whyNotComparable(launch, { client: chain, head });
  if (reason !== null) return { reason };
  const settings = await withOperators(launch.settings, chain, db);
  const plan = await root.prepare({ settings, db, log, chain, head });
  if ("reason" in plan) return plan;
  await openToReaders(db, plan.viewsSchema);
  if (settings.exclusive) await clearLock(db, plan.deployment);
  if (signal.aborted) return stopped;
  const startedAt = Date.now();
  const ponder = startPonder(settings, plan);
  const closed = once(ponder, "exit").finally(() => running.delete(ponder));
  running.set(ponder, closed);
  return { ponder, closed, plan, startedAt };
}

/**
 * Resolves when this Ponder is ready, has ended, or has had its time: two that fetch the same blocks at once may lock each
 * other's rows in the copy of the chain, and one of them would have to start again.
 */
async function hasSettled({ db, signal }: Launch, { closed, plan, startedAt }: Started): Promise<void> {
  let isOver = signal.aborted;
  void closed.finally(() => {
    isOver = true;
  });
  const goesOn = () => !isOver && !signal.aborted && Date.now() - startedAt < SETTLES_MS;
  while (goesOn() && !(await isReady(db, plan.deployment, startedAt).catch(() => false)))
    await wait(READY_POLL_MS, undefined, { signal }).catch(() => undefined);
}

/** Why the index cannot be compared with the chain now; null if both belong together, or nothing is left of the index. */
async function whyNotComparable({ settings, db, log, signal, running }: Launch, node: ChainNode) {
  const patience = {
    overMs: settings.otherChainAfterSeconds * 1000,
    wait: (ms: number) => wait(ms, undefined, { signal }),
  };
  try {
    return await whyNotSameChain(db, node, patience);
  } catch (error) {
    if (!(error instanceof OtherChainError) || settings.otherChain === "stop") throw error;
    // What still writes would put blocks of the other chain into what is made next.
    for (const ponder of running.keys()) closePonder(ponder);
    await Promise.allSettled(running.values());
    const schemas = await dropIndexes(db);
    log.warn(
      { schemas, head: node.head.number },
      "the index was built from a different chain than the node's and was dropped",
    );
    return null;
  }
}

interface Served extends Started {
  readonly root: Root;
}

interface Run {
  /** Aborts when it has ended. */
  readonly over: AbortSignal;
  readonly stop: () => void;
}

/** Shows what this run of Ponder makes to readers, once it is ready. Stops the run when a newer release's index is shown. */
async function serve(launch: Launch, served: Served, run: Run): Promise<void> {
  await Promise.all([present(launch, served, run.over), watchSuccession(launch, run)]).catch((error: unknown) => {
    if (!run.over.aborted) launch.log.warn({ err: error, root: served.root.name }, "nobody looks after the views");
  });
}

const isOvertaken = async ({ db, settings }: Launch) => (await whyOvertaken(db, settings.viewsSchema)) !== null;

async function watchSuccession(launch: Launch, { over, stop }: Run): Promise<void> {
  do await wait(SUCCESSION_MS, undefined, { signal: over });
  while (!(await isOvertaken(launch).catch(() => false)));
  stop();
}

/**
 * Waits until this run of Ponder answers, then shows its index to readers and drops what they saw before, as soon as nobody
 * writes or reads that any more. The database may restart meanwhile.
 */
async function present(launch: Launch, { root, plan, startedAt }: Served, over: AbortSignal): Promise<void> {
  const { settings, db, log } = launch;
  const { deployment, viewsSchema, prefix } = plan;
  const shown = { schema: deployment.schema, viewsSchema };
  const ready = async () =>
    (await isReady(db, deployment, startedAt)) && (await hasCaughtUp(db, shown)) && !(await isOvertaken(launch));
  while (!(await ready().catch(() => false))) await wait(READY_POLL_MS, undefined, { signal: over });
  const insist = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (over.aborted) throw error;
        log.warn({ err: error, root: root.name }, "the index could not be made available to readers");
      }
      await wait(SUCCESSION_MS, undefined, { signal: over });
    }
  };
  const before = await insist(() => showIndex(db, shown, over));
  await insist(() => openToReaders(db, viewsSchema));
  const dropped = await insist(() => dropReplaced(db, { prefix, exclusive: settings.exclusive }, deployment));
  log.info({ ...deployment, afterMs: Date.now() - startedAt, before, dropped }, root.says.ready);
  if (before === null || before === deployment.schema || dropped.includes(before)) return;
  const drop = async () => !(await isHeld(db, before)) && (await dropUnlessBusy(db, before));
  do await wait(SUCCESSION_MS, undefined, { signal: over });
  while (!(await drop().catch(() => false)));
  log.info({ ...deployment, dropped: [before] }, "the index that was shown before is dropped");
}
