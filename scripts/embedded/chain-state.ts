import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import type { AnvilClient } from "./anvil.ts";
import { replaceFile } from "./replace-file.ts";

const DUMP_ATTEMPTS = 20;

/**
 * Where a chain's state is stored. anvil writes `exit` itself when it ends, but not atomically, so a kill can corrupt
 * it. `saved` (gzip) is ours and always intact. anvil's own periodic dump is not used, because it writes the whole
 * chain, 1.7 kB a block, every second.
 */
export interface StateFiles {
  readonly exit: string;
  readonly saved: string;
  readonly load: string;
}

/** The files of one chain; the folder is made. */
export function stateFiles(directory: string): StateFiles {
  mkdirSync(directory, { recursive: true });
  return {
    exit: join(directory, "exit.json"),
    saved: join(directory, "saved.json.gz"),
    load: join(directory, "load.json"),
  };
}

/** The path of the most recent intact state, ready for `--load-state`; null if the chain has not been prepared yet. */
export function newestState(files: StateFiles): string | null {
  // The first save is made when the chain is prepared: `exit` alone is from a first start that was interrupted before.
  if (!existsSync(files.saved)) return null;
  const candidates = [whole(files.exit, (bytes) => bytes), whole(files.saved, (bytes) => gunzipSync(bytes))].filter(
    (state) => state !== null,
  );
  const newest = candidates.sort((a, b) => b.height - a.height)[0];
  if (newest === undefined) return null;
  replaceFile(files.load, newest.json);
  return files.load;
}

/** Writes the chain's state now, replacing the file atomically. */
export async function saveState(client: AnvilClient, path: string): Promise<void> {
  replaceFile(path, Buffer.from((await dumpState(client)).slice(2), "hex"));
}

/**
 * The chain's whole state as anvil returns it: gzipped JSON, in hex. anvil reads its blocks and its accounts one after
 * the other, so for a block mined in between it would keep the payments but lose their logs. Such a state is discarded.
 */
export async function dumpState(client: AnvilClient): Promise<`0x${string}`> {
  for (let attempt = 1; attempt <= DUMP_ATTEMPTS; attempt++) {
    const before = await client.getBlockNumber();
    const state = await client.request<{ Parameters: []; ReturnType: `0x${string}` }>({
      method: "anvil_dumpState" as never,
      params: [] as never,
    });
    if ((await client.getBlockNumber()) === before) return state;
  }
  throw new Error(`The local chain mined a block during each of ${DUMP_ATTEMPTS} state dumps.`);
}

/**
 * Saves every second, and less often as the chain grows, so that saving takes at most a tenth of the time. Ends with
 * `signal`.
 */
export async function keepSaving(client: AnvilClient, path: string, signal: AbortSignal): Promise<void> {
  let lastHeight = -1n;
  while (!signal.aborted) {
    const started = Date.now();
    const height = await client.getBlockNumber().catch(() => lastHeight);
    if (height !== lastHeight) {
      const save = saveState(client, path).then(() => height);
      lastHeight = await save.catch(() => lastHeight);
    }
    await delay(Math.max(1_000, 10 * (Date.now() - started)), undefined, { signal }).catch(() => {});
  }
}

function whole(path: string, decode: (bytes: Buffer) => Buffer): { json: Buffer; height: number } | null {
  if (!existsSync(path)) return null;
  try {
    const json = decode(readFileSync(path));
    const { best_block_number: height } = JSON.parse(json.toString("utf8"));
    return { json, height: Number(height) };
  } catch {
    return null;
  }
}
