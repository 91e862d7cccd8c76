import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { resolve } from "node:path";
import type { History } from "./history/history.ts";
import type { Deployment } from "./schemas.ts";
import type { IndexerSettings } from "./settings.ts";

/** Ponder takes up to 5 seconds to close. */
const CLOSE_MS = 8_000;

export interface PonderPlan {
  readonly settings: IndexerSettings;
  readonly deployment: Deployment;
  readonly history: History | null;
  /** The first block of which USDC's logs are read. */
  readonly readsFrom: number;
  /** The launcher's session that holds the index's lock. */
  readonly holder: string;
}

/**
 * Ponder sets its statement timeout in the startup message, which poolers such as PgBouncer reject. In `pg`, a URL parameter
 * takes precedence, and an empty timeout is not sent. ponder.config.ts sets one after connecting.
 */
function withoutStartupParameters(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.searchParams.set("statement_timeout", "");
  return url.href;
}

/**
 * Starts Ponder on this folder, with the variables that environment.ts reads. Ponder writes `ponder-env.d.ts` at every start.
 * The file is a link to /dev/null, so the folder may be read-only.
 */
export function startPonder({ settings, deployment, history, readsFrom, holder }: PonderPlan): ChildProcess {
  const manifest = findPackageJSON("ponder", import.meta.url);
  if (manifest === undefined) throw new Error("the ponder package is not installed: run npm install");
  const { bin } = JSON.parse(readFileSync(manifest, "utf8"));
  const env = {
    ...process.env,
    PORT: String(settings.ponderPort),
    DATABASE_URL: withoutStartupParameters(settings.databaseUrl),
    DATABASE_SCHEMA: deployment.schema,
    // The launcher manages the views (views.ts).
    DATABASE_VIEWS_SCHEMA: undefined,
    DATABASE_PRIVATE_URL: undefined,
    // The schema's name identifies the index. By default, Ponder would rebuild it after any change of a handler's text.
    PONDER_EXPERIMENTAL_DB: "platform",
    PONDER_RPC_URL_8453: Array(settings.rpcCopies).fill(settings.rpcUrls).flat().join(","),
    POLL_MS: String(settings.pollMs),
    INDEX_HOLDER: holder,
    INDEX_SCOPE: settings.scope,
    FIRST_BLOCK: String(deployment.startBlock),
    START_BLOCK: String(readsFrom),
    OWN_ADDRESSES: settings.ownAddresses.join(","),
    ESCROW_ADDRESSES: settings.escrows.join(","),
    // No later than the index's start block, which is part of the schema's name.
    ESCROW_START_BLOCK: String(Math.min(settings.escrowStartBlock, deployment.startBlock)),
    OPERATORS: settings.operators.map(({ address, collector }) => `${address}=${collector}`).join(","),
    CUSTODIES: [...new Set(settings.operators.map(({ custody }) => custody))].join(","),
    HISTORY_SCHEMA: history?.schema ?? "",
    HISTORY_ID: history?.id ?? "",
  };
  const command = [
    // Ponder's use of pg makes Node print a deprecation warning at every start.
    ...[`--max-old-space-size=${settings.heapMiB}`, "--disable-warning=DeprecationWarning"],
    ...[resolve(manifest, "..", bin.ponder), "start", "--root", import.meta.dirname, "--hostname", "127.0.0.1"],
    ...["--log-format", "json", "--log-level", settings.ponderLogLevel],
  ];
  return spawn(process.execPath, command, { env, stdio: ["ignore", "inherit", "inherit", "ipc"] });
}

/** Asks Ponder to close, and ends it if it does not. */
export function closePonder(ponder: ChildProcess): void {
  ponder.kill("SIGTERM");
  setTimeout(() => ponder.kill("SIGKILL"), CLOSE_MS).unref();
}
