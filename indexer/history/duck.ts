import { mkdirSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";

/** What DuckDB keeps in memory; the rest goes to its folder. The process needs about half as much again. */
const MEMORY = "2GB";
/** Each thread sorts in memory of its own. */
const MOST_THREADS = 4;

/** A DuckDB database of our own that is gone when it is closed. */
export interface Duck {
  readonly run: (statement: string) => Promise<void>;
  /** Rows with numbers, text, bytes, and booleans; a bigint where DuckDB's type is 64 bits wide or more. */
  readonly rows: <T>(query: string) => Promise<readonly T[]>;
  /** Where it keeps what memory does not hold; other files there are removed with it. */
  readonly folder: string;
  readonly close: () => void;
}

/**
 * Opens an empty database that uses this folder, whose previous content is removed: only one process at a time may use
 * it. Tables are in memory until that is full: on a disk each would be compressed, for one reading.
 * DuckDB's extensions come with it; it fetches none.
 */
export async function openDuck(folder: string): Promise<Duck> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const instance = await DuckDBInstance.create(":memory:", {
    threads: String(Math.min(MOST_THREADS, availableParallelism())),
    memory_limit: MEMORY,
    temp_directory: join(folder, "spilled"),
    preserve_insertion_order: "false",
    ...{ autoinstall_known_extensions: "false", autoload_known_extensions: "false" },
  });
  const connection = await instance.connect();
  return {
    folder,
    run: async (statement) => void (await connection.run(statement)),
    rows: async <T>(query: string) => (await connection.runAndReadAll(query)).getRowObjectsJS() as unknown as T[],
    close: () => {
      connection.closeSync();
      instance.closeSync();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A text as a literal of SQL. */
export const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`;
