import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import pg from "pg";
import { SERVICE } from "../../bench/index/generated-chain.ts";
import { loadHistory } from "../../indexer/history/load.ts";
import { type IndexerSettings, parseSettings } from "../../indexer/settings.ts";
import { bareEnvironment } from "../support/service/environment.ts";

/** What the indexer and the loader of a generated chain are configured with. */
export const environment = (changed: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  DATABASE_URL: "postgres://unused/unused",
  BASE_RPC_URL: "http://unused",
  PAY_TO_ADDRESS: SERVICE,
  START_BLOCK: "1",
  INDEX_HISTORY: "history",
  EXCLUSIVE: "1",
  ...changed,
});

export function settingsOf(changed: Readonly<Record<string, string>> = {}): IndexerSettings {
  const settings = parseSettings(environment(changed));
  if ("problem" in settings) throw new Error(settings.problem);
  return settings;
}

export interface Preload {
  readonly pid: number;
  /** Its exit code, null after a signal, and all that it said. */
  readonly ended: Promise<{ readonly code: number | null; readonly said: string }>;
}

/** Starts `npm run index:preload` on this file. */
export function startPreload(file: string, env: Readonly<Record<string, string>>): Preload {
  const child = spawn(process.execPath, ["scripts/index-preload.ts", file], {
    env: { ...bareEnvironment(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const code = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const ended = Promise.all([code, text(child.stdout), text(child.stderr)]).then(([code, ...said]) => ({
    code,
    said: said.join(""),
  }));
  return { pid: child.pid ?? 0, ended };
}

/** Loads a file in this process, whatever chain it is of, into the schema `INDEX_HISTORY`. */
export async function load(databaseUrl: string, file: string, changed: Readonly<Record<string, string>> = {}) {
  const db = new pg.Client({ connectionString: databaseUrl });
  await db.connect();
  const settings = settingsOf(changed);
  const schema = settings.historySchema ?? "history";
  try {
    return await loadHistory({ db, file, schema, settings, accept: async () => {}, tell: () => {} });
  } finally {
    await db.end();
  }
}
