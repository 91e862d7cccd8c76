import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { flush } from "./replace-file.ts";

/** One state: the database refers to the chains' blocks, and the keys signed the documents in it. Kept or deleted together. */
const STATE = ["chains", "ignition", "keys.json", "postgres", "witness.db", "witness.db-journal"];
/** Exists while no start is running and the last one stopped cleanly. */
const MARKER = "stopped-cleanly";

/** `new` had no state, `deleted` had one that cannot be trusted. */
export type DirectoryState = "new" | "resumed" | "deleted";

/** A data directory that no other start can use until this process ends. */
export interface DataDirectory {
  readonly path: string;
  /** Where the children write their output; the previous start's is in `logs.previous`. */
  readonly logs: string;
  /**
   * Begins to change the state. Without a clean stop before, all of it is deleted: the chains keep their blocks in memory,
   * so a kill leaves a database that knows more than they do.
   */
  readonly open: () => DirectoryState;
  /** Records that the state is complete and stored. */
  readonly close: () => void;
  readonly release: () => void;
}

export class DirectoryInUseError extends Error {}

/** @throws DirectoryInUseError while another start is using it. */
export function takeDataDirectory(path: string): DataDirectory {
  mkdirSync(path, { recursive: true });
  const release = lock(path);
  const logs = join(path, "logs");
  const marker = join(path, MARKER);
  const open = () => {
    rmSync(`${logs}.previous`, { recursive: true, force: true });
    if (existsSync(logs)) renameSync(logs, `${logs}.previous`);
    mkdirSync(logs);
    if (existsSync(marker)) {
      rmSync(marker);
      flush(path);
      return "resumed";
    }
    const left = STATE.map((name) => join(path, name)).filter(existsSync);
    // A database server that a kill left behind may still be ending and writing.
    for (const name of left) rmSync(name, { recursive: true, force: true, maxRetries: 10 });
    return left.length === 0 ? "new" : "deleted";
  };
  const close = () => {
    writeFileSync(marker, "");
    flush(path);
  };
  return { path, logs, open, close, release };
}

/** By a lock that the kernel ends with the process, even a killed one. Node has none but SQLite's. */
function lock(path: string): () => void {
  const database = new DatabaseSync(join(path, "lock.db"));
  try {
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (cause) {
    database.close();
    throw new DirectoryInUseError(
      `${path} is in use by another npm start. Stop it, or set DATA_DIR to a different folder.`,
      { cause },
    );
  }
  return () => database.close();
}
