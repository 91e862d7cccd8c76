import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { endProcess, identify, isAlive, type ProcessIdentity } from "./leftovers.ts";

/** A start's claim on its data directory. */
export interface DataDirectory {
  /** Where the children write their output; the previous start's is in `logs.previous`. */
  readonly logs: string;
  /** Records a child, so that the next start can end it if this one could not. */
  readonly remember: (name: string, pid: number) => void;
  readonly release: () => void;
}

export class DirectoryInUseError extends Error {}

/**
 * Claims the data directory for this process and ends what a killed start left running from it.
 * @throws DirectoryInUseError while another start is using it.
 */
export async function takeDataDirectory(path: string): Promise<DataDirectory> {
  mkdirSync(path, { recursive: true });
  const lock = join(path, "start.lock");
  const children = join(path, "processes.json");
  takeLock(lock, path);
  await endLeftovers(children);
  const logs = join(path, "logs");
  rmSync(`${logs}.previous`, { recursive: true, force: true });
  if (existsSync(logs)) renameSync(logs, `${logs}.previous`);
  mkdirSync(logs);
  const running = new Map<string, ProcessIdentity>();
  const remember = (name: string, pid: number) => {
    const identity = identify(pid);
    if (identity !== null) running.set(name, identity);
    writeFileSync(children, JSON.stringify([...running.values()]));
  };
  const release = () => {
    rmSync(children, { force: true });
    rmSync(lock, { force: true });
  };
  return { logs, remember, release };
}

/** Removes a directory that nothing was written to. */
export function removeIfUnused(path: string): void {
  rmSync(join(path, "logs"), { recursive: true, force: true });
  try {
    rmdirSync(path);
  } catch {
    // It holds an earlier start's data.
  }
}

function takeLock(lock: string, path: string): void {
  const holder = readIdentity(lock);
  if (holder !== null && isAlive(holder)) {
    throw new DirectoryInUseError(
      `${path} is in use by another npm start (process ${holder.pid}). Stop it, or set DATA_DIR to a different folder.`,
    );
  }
  rmSync(lock, { force: true });
  closeSync(openSync(lock, "wx"));
  writeFileSync(lock, JSON.stringify(identify(process.pid)));
}

async function endLeftovers(file: string): Promise<void> {
  const leftovers: readonly ProcessIdentity[] = existsSync(file) ? parse(file, []) : [];
  await Promise.all(leftovers.map((leftover) => endProcess(leftover, "SIGINT", 12_000)));
}

const readIdentity = (lock: string): ProcessIdentity | null => (existsSync(lock) ? parse(lock, null) : null);

function parse<T>(file: string, otherwise: T): T {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return otherwise;
  }
}
