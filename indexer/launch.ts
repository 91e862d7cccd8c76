import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import pg from "pg";
import type { Logger } from "pino";
import { connectChain, readHead, WrongChainError } from "./chain.ts";
import { chooseDeployment } from "./choose-deployment.ts";
import { OtherColumnsError } from "./columns.ts";
import { clearLock, type Deployment, dropReplaced, isReady, openToReaders, ponderPackage } from "./deployment.ts";
import { expectFit, type History, isFinalOn, readHistory, UnfitHistoryError } from "./history/history.ts";
import { rememberMarks } from "./marks.ts";
import { withOperators } from "./operators.ts";
import { type OwnAddress, OwnAddressError, readOwnAddresses } from "./own-addresses.ts";
import { refetchPruned } from "./pruned.ts";
import { keepPruning } from "./pruning.ts";
import { type ChainNode, OtherChainError, whyNotSameChain } from "./same-chain.ts";
import { dropIndexes } from "./schemas.ts";
import type { IndexerSettings } from "./settings.ts";

const FIRST_RESTART_MS = 500;
const LAST_RESTART_MS = 30_000;
/** After a run this long the start counts as successful, and the next restart is quick again. */
const STEADY_MS = 60_000;
const READY_POLL_MS = 250;
/** Ponder allows itself 5 seconds to close. */
const CLOSE_MS = 8_000;

interface Launch {
  readonly settings: IndexerSettings;
  readonly db: pg.Pool;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * Keeps Ponder indexing until `signal` aborts; when the promise settles, Ponder has ended. Ponder exits with 1 and 75
 * for temporary reasons, so every start first checks that the index and the chain still belong together.
 * @throws WrongChainError if the node does not serve Base, OtherChainError if it serves another chain than the index was
 * made from, UnfitHistoryError if the history does not fit these settings and this chain, OwnAddressError or
 * OtherColumnsError if the index's rows do not fit the service's addresses or this release.
 */
export async function runIndexer(settings: IndexerSettings, log: Logger, signal: AbortSignal): Promise<void> {
  const db = new pg.Pool({ connectionString: settings.databaseUrl, max: 2, application_name: "indexer_launcher" });
  db.on("error", (error) => log.warn({ err: error }, "a database connection was lost"));
  const launch: Launch = { settings, db, log, signal };
  const over = new AbortController();
  const pruning = keepPruning({ settings, log, signal: AbortSignal.any([signal, over.signal]) });
  try {
    for (let failures = 0; !signal.aborted; failures += 1) {
      const started = Date.now();
      const outcome = await runOnce(launch).catch((error: unknown) => {
        if (isLasting(error)) throw error;
        return { err: error };
      });
      if (signal.aborted) break;
      if (Date.now() - started > STEADY_MS) failures = 0;
      const retryMs = Math.min(LAST_RESTART_MS, FIRST_RESTART_MS * 2 ** failures);
      log.warn({ ...outcome, retryMs }, "the indexer stopped and is restarting");
      await wait(retryMs, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    over.abort();
    await pruning;
    await db.end();
  }
}

const LASTING = [WrongChainError, OtherChainError, UnfitHistoryError, OwnAddressError, OtherColumnsError];

/** Whether only the operator can end this. */
export const isLasting = (error: unknown): error is Error => LASTING.some((lasting) => error instanceof lasting);

async function runOnce(given: Launch): Promise<object> {
  const prepared = await prepare(given);
  if ("reason" in prepared) return prepared;
  if (given.signal.aborted) return {};
  const { settings, deployment } = prepared;
  const launch = { ...given, settings };
  const ponder = startPonder(prepared);
  const closed = once(ponder, "exit");
  const stop = () => closePonder(ponder);
  launch.signal.addEventListener("abort", stop);
  const over = new AbortController();
  const serving = serve(launch, deployment, over.signal);
  launch.log.info({ ...deployment, ponderPid: ponder.pid }, "ponder started");
  try {
    const [code, signal]: unknown[] = await closed;
    return { code, signal };
  } finally {
    over.abort();
    launch.signal.removeEventListener("abort", stop);
    await serving;
  }
}

interface Prepared {
  /** With the operators. */
  readonly settings: IndexerSettings;
  readonly deployment: Deployment;
  readonly own: readonly OwnAddress[];
  readonly history: History | null;
}

/** Everything that must hold before Ponder starts; a reason while nothing can be decided. */
async function prepare(launch: Launch): Promise<Prepared | { readonly reason: string }> {
  const { db, log } = launch;
  const chain = connectChain(launch.settings.rpcUrl);
  const head = await readHead(chain);
  const reason = await whyNotComparable(launch, { client: chain, head });
  if (reason !== null) return { reason };
  const settings = await withOperators(launch.settings, chain, db);
  const history = settings.historySchema === null ? null : await readHistory(db, settings.historySchema);
  if (history !== null) {
    expectFit(history, settings);
    if (!(await isFinalOn(chain, head, history)))
      return { reason: "the history's last block is not final on the node" };
  }
  const deployment = await chooseDeployment(db, settings, { head: head.number, history });
  await rememberMarks(db, chain, { head: head.number, startBlock: deployment.startBlock });
  const refetched = await refetchPruned(
    db,
    deployment,
    history === null ? deployment.startBlock : history.lastBlock + 1,
  );
  if (refetched !== null) log.warn({ ...deployment, refetched }, "blocks that were pruned are fetched again");
  await openToReaders(db, settings.viewsSchema);
  if (settings.exclusive) await clearLock(db, deployment);
  return { settings, deployment, own: await readOwnAddresses(db, deployment.schema), history };
}

/** Why the index cannot be compared with the chain now; null if both belong together, or nothing is left of the index. */
async function whyNotComparable({ settings, db, log, signal }: Launch, node: ChainNode): Promise<string | null> {
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

function startPonder({ settings, deployment, own, history }: Prepared): ChildProcess {
  const { schema, startBlock } = deployment;
  const ponder = join(dirname(ponderPackage()), "dist/esm/bin/ponder.js");
  const preload = pathToFileURL(join(import.meta.dirname, "preload.ts")).href;
  const flags = ["--root", import.meta.dirname, "--schema", schema, "--views-schema", settings.viewsSchema];
  const output = ["--hostname", "127.0.0.1", "--log-format", "json", "--log-level", settings.ponderLogLevel];
  const env = {
    ...process.env,
    // Ponder prefers PORT, which is the API's, over its own flag.
    PORT: String(settings.ponderPort),
    DATABASE_URL: settings.databaseUrl,
    BASE_RPC_URL: Array.from({ length: settings.rpcCopies }, () => settings.rpcUrl).join(","),
    BASE_WS_URL: settings.websocketUrl ?? "",
    OWN_ADDRESSES: own.map(({ address, fromBlock }) => `${address}=${fromBlock}`).join(","),
    ESCROW_ADDRESSES: settings.escrows.join(","),
    OPERATORS: settings.operators.map(({ address, collector }) => `${address}=${collector}`).join(","),
    CUSTODIES: [...new Set(settings.operators.map(({ custody }) => custody))].join(","),
    // At the latest from the index's own start, which the schema's name fixes.
    ESCROW_START_BLOCK: String(Math.min(settings.escrowStartBlock, startBlock)),
    INDEX_SCOPE: settings.scope,
    INDEX_SCHEMA: schema,
    FIRST_BLOCK: String(startBlock),
    START_BLOCK: String(history === null ? startBlock : history.lastBlock + 1),
    HISTORY_SCHEMA: history?.schema ?? "",
    POLL_MS: String(settings.pollMs),
  };
  // Ponder's use of pg makes Node print a deprecation warning at every start.
  const node = [
    `--max-old-space-size=${settings.heapMiB}`,
    "--disable-warning=DeprecationWarning",
    "--import",
    preload,
  ];
  return spawn(process.execPath, [...node, ponder, "start", ...flags, ...output], {
    env,
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
}

function closePonder(ponder: ChildProcess): void {
  ponder.kill("SIGTERM");
  setTimeout(() => ponder.kill("SIGKILL"), CLOSE_MS).unref();
}

/** Waits until this run of Ponder answers, then lets readers in and drops what the views showed before. */
async function serve({ settings, db, log }: Launch, deployment: Deployment, over: AbortSignal): Promise<void> {
  const started = Date.now();
  // A backfill may take hours and outlast a database restart.
  const ready = () => isReady(db, deployment, started).catch(() => false);
  try {
    while (!(await ready())) await wait(READY_POLL_MS, undefined, { signal: over });
    await openToReaders(db, settings.viewsSchema);
    const dropped = await dropReplaced(db, settings, deployment);
    log.info({ ...deployment, afterMs: Date.now() - started, dropped }, "index ready");
  } catch (error) {
    if (!over.aborted) log.warn({ err: error }, "the index could not be made available to readers");
  }
}
