import { mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { BusyFolderError, ExportRefusal } from "./refusal.ts";

/** Public files. Each is whole at any moment, whatever dies, and after a loss of power once `settle` has returned. */
export interface Folder {
  readonly root: string;
  /** Null if it is not there. */
  read(path: string): Promise<Buffer | null>;
  /** Names of files and folders; none if the folder is not there. */
  list(path: string): Promise<readonly string[]>;
  /** Writes a file that never changes. @throws ExportRefusal if it is there with other bytes */
  keep(path: string, bytes: Uint8Array): Promise<void>;
  /** Writes a file that changes. */
  replace(path: string, bytes: Uint8Array): Promise<void>;
  /** Removes a file, or a folder with all that is in it. */
  remove(path: string): Promise<void>;
  /** Returns once all that was written lasts. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

/** Files that are not finished: nothing that is read stands there. */
const UNFINISHED = ".unfinished";
const LOCK = ".lock";

/** @throws BusyFolderError while another process has it open */
export async function openFolder(root: string): Promise<Folder> {
  await mkdir(root, { recursive: true });
  const release = lock(root);
  await rm(join(root, UNFINISHED), { recursive: true, force: true });
  await mkdir(join(root, UNFINISHED));
  /** Folders whose names have changed. */
  const touched = new Set<string>();
  let written = 0;
  const touch = (path: string): void => {
    for (let folder = dirname(path); !touched.has(folder); folder = dirname(folder)) touched.add(folder);
  };
  const replace = async (path: string, bytes: Uint8Array): Promise<void> => {
    const beside = join(root, UNFINISHED, String(written++));
    await writeWhole(beside, bytes);
    await mkdir(dirname(join(root, path)), { recursive: true });
    touch(path);
    await rename(beside, join(root, path));
  };
  const read = (path: string) => readFile(join(root, path)).catch(nullIfAbsent);
  return {
    root,
    read,
    list: async (path) => (await readdir(join(root, path)).catch(nullIfAbsent)) ?? [],
    async keep(path, bytes) {
      const known = await read(path);
      if (known === null) return replace(path, bytes);
      if (known.equals(bytes)) return;
      throw new ExportRefusal(
        `FORK: ${join(root, path)} has other bytes than the log. It is not overwritten: somebody may have read it.`,
      );
    },
    replace,
    remove: (path) => rm(join(root, path), { recursive: true, force: true }),
    async settle() {
      const folders = [...touched];
      touched.clear();
      for (const folder of folders) await syncFolder(join(root, folder));
    },
    async close() {
      await rm(join(root, UNFINISHED), { recursive: true, force: true });
      release();
    },
  };
}

/** A lock of the operating system's, which ends with its process. SQLite is how Node takes one. */
function lock(root: string): () => void {
  const database = new DatabaseSync(join(root, LOCK), { timeout: 0 });
  try {
    database.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    throw (error as { errcode?: number }).errcode === BUSY
      ? new BusyFolderError(`another process is writing to ${root}`)
      : error;
  }
  return () => database.close();
}

/** SQLITE_BUSY */
const BUSY = 5;

async function writeWhole(file: string, bytes: Uint8Array): Promise<void> {
  const handle = await open(file, "w");
  try {
    await handle.writeFile(bytes);
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

async function syncFolder(folder: string): Promise<void> {
  const isThere = await stat(folder).catch(nullIfAbsent);
  if (isThere === null) return;
  const handle = await open(folder);
  await handle.sync().finally(() => handle.close());
}

function nullIfAbsent(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT") return null;
  throw error;
}
