import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { flush } from "./replace-file.ts";

/** The parts of one state, kept or deleted together: the database refers to the chains' blocks, and the keys signed its documents. */
const STATE = ["chains", "ignition", "keys.json", "postgres", "witness.db", "witness.db-journal"];
/** Exists while no instance is running and the last one stopped cleanly. */
const MARKER = "stopped-cleanly";

/** `new` had no state, and `deleted` had an unreliable state. */
export type DirectoryState = "new" | "resumed" | "deleted";

/** A data directory that no other start can use until this process ends. */
export interface DataDirectory {
  readonly path: string;
  /** The folder of the children's output. The previous run's output is in `logs.previous`. */
  readonly logs: string;
  /**
   * Begins to change the state. If the last stop was not clean, the state is deleted, because the chains keep their blocks in
   * memory, so after a kill the database is ahead of them.
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
    // A database server of a killed run may still be writing.
    for (const name of left) rmSync(name, { recursive: true, force: true, maxRetries: 10 });
    return left.length === 0 ? "new" : "deleted";
  };
  const close = () => {
    writeFileSync(marker, "");
    flush(path);
  };
  return { path, logs, open, close, release };
}

/** Uses SQLite's lock, because the kernel releases it even if the process is killed, and Node has no other such lock. */
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
