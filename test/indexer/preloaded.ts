import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import pg from "pg";
import { loadHistory } from "../../indexer/history/load.ts";
import { historyTables } from "../../indexer/history/rows.ts";
import type { Scope } from "../../indexer/ledger.ts";
import { type IndexerSettings, parseSettings } from "../../indexer/settings.ts";
import { SERVICE } from "../support/indexer/generated-chain.ts";
import { bareEnvironment } from "../support/service/environment.ts";
import { waitUntil } from "../support/wait-until.ts";

/** The environment for the indexer and the loader of a generated chain. */
export const environment = (changed: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  DATABASE_URL: "postgres://unused/unused",
  BASE_RPC_URL: "http://unused",
  PAY_TO_ADDRESS: SERVICE,
  START_BLOCK: "1",
  INDEX_HISTORY: "history",
  INDEX_SCOPE: "full",
  ...changed,
});

export function settingsOf(changed: Readonly<Record<string, string>> = {}): IndexerSettings {
  const settings = parseSettings(environment(changed));
  if ("problem" in settings) throw new Error(settings.problem);
  return settings;
}

export interface Preload {
  readonly pid: number;
  /** Resolves once the output contains this. */
  readonly untilPrinted: (words: string) => Promise<void>;
  /** The exit code (null after a signal) and the complete output. */
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>;
}

/** Starts `npm run index:preload` on this file. */
export function startPreload(file: string, env: Readonly<Record<string, string>>): Preload {
  const child = spawn(process.execPath, ["scripts/index-preload.ts", file], {
    env: { ...bareEnvironment(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  return {
    pid: child.pid ?? 0,
    untilPrinted: async (words) => {
      if (!(await waitUntil(() => output.includes(words), 60_000)))
        throw new Error(`It did not print "${words}":\n${output}`);
    },
    ended: once(child, "close").then(([code]) => ({ code, output })),
  };
}

/** Loads files of any chain in this process into the schema `INDEX_HISTORY`. */
export async function load(
  databaseUrl: string,
  files: string | readonly string[],
  changed: Readonly<Record<string, string>> = {},
) {
  const db = new pg.Client({ connectionString: databaseUrl });
  await db.connect();
  const settings = settingsOf(changed);
  const schema = settings.historySchema ?? "history";
  try {
    return await loadHistory({ db, files: [files].flat(), schema, settings });
  } finally {
    await db.end();
  }
}

/** A small file of transfers. */
export const FILE = join(import.meta.dirname, "preload-transfers.csv");

/** Every row of the history. */
export async function historyRows(db: pg.Pool, scope: Scope = "full"): Promise<Record<string, unknown>> {
  const rows = historyTables(scope).map(
    async (table) => [table, (await db.query(`select * from history.${table} t order by t`)).rows] as const,
  );
  return Object.fromEntries(await Promise.all(rows));
}

/** All schemas of the database, to check that no unfinished one remains. */
export const schemasIn = async (db: pg.Pool): Promise<readonly object[]> =>
  (await db.query("select nspname from pg_namespace order by 1")).rows;
