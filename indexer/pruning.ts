import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import type { Logger } from "pino";
import { dropDays } from "./days.ts";
import { prune } from "./prune.ts";
import type { IndexerSettings } from "./settings.ts";

/** The first time comes soon, so that a service which restarts often prunes, too. */
const FIRST_MS = 60_000;

interface Pruning {
  readonly settings: Pick<IndexerSettings, "databaseUrl" | "pruneSeconds">;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Prunes Ponder's copy of the chain and the index's oldest days now and then, until `signal` aborts. A failure is logged: the next time may do. */
export async function keepPruning({ settings, log, signal }: Pruning): Promise<void> {
  const everyMs = settings.pruneSeconds * 1000;
  if (everyMs === 0) return;
  let next = Math.min(FIRST_MS, everyMs);
  for (let isThorough = true; ; next = everyMs) {
    await wait(next, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    try {
      const { days, ...pruned } = await pruneOnce(settings.databaseUrl, { isThorough, signal });
      log.info(pruned, "pruned ponder_sync");
      for (const dropped of days) log.info(dropped, "dropped days before every window");
      isThorough = false;
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, "ponder_sync could not be pruned");
    }
  }
}

/** Its connections have a name of their own: when the indexer ends, one cancels what the other does, which may take minutes. */
async function pruneOnce(databaseUrl: string, plan: { readonly isThorough: boolean; readonly signal: AbortSignal }) {
  const name = `indexer_pruning_${randomUUID()}`;
  const db = new pg.Pool({ connectionString: databaseUrl, max: 2, application_name: name });
  db.on("error", () => undefined);
  const cancel = `select pg_cancel_backend(pid) from pg_stat_activity where application_name = $1 and pid <> pg_backend_pid()`;
  const giveUp = () => void db.query(cancel, [name]).catch(() => undefined);
  plan.signal.addEventListener("abort", giveUp);
  try {
    return { ...(await prune(db, plan)), days: await dropDays(db, plan.signal) };
  } finally {
    plan.signal.removeEventListener("abort", giveUp);
    await db.end();
  }
}
