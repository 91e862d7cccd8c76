import { mkdirSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";

/** An empty DuckDB database that is gone when it is closed, or when the process exits. */
export interface Duck {
  readonly run: (statement: string) => Promise<void>;
  /** A bigint where DuckDB's type is 64 bits wide or more. */
  readonly rows: <T>(query: string) => Promise<readonly T[]>;
  /** Its temporary files are here; other files in it are removed with them. */
  readonly folder: string;
  readonly close: () => void;
}

/** Opens a database that uses this folder, whose previous content is removed: only one process at a time may use it. */
export async function openDuck(folder: string): Promise<Duck> {
  const remove = () => rmSync(folder, { recursive: true, force: true });
  remove();
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const instance = await DuckDBInstance.create(":memory:", {
    // Each thread sorts in memory of its own.
    threads: String(Math.min(4, availableParallelism())),
    memory_limit: "2GB",
    temp_directory: join(folder, "spilled"),
    preserve_insertion_order: "false",
    // It leaves rows out where it orders by a cast: https://github.com/duckdb/duckdb/issues/25158
    disabled_optimizers: "top_n",
    ...{ autoinstall_known_extensions: "false", autoload_known_extensions: "false" },
  });
  const connection = await instance.connect();
  // The process would otherwise wait for the end of a query.
  const leave = () => {
    connection.interrupt();
    remove();
  };
  process.once("exit", leave);
  return {
    folder,
    run: async (statement) => void (await connection.run(statement)),
    rows: async <T>(query: string) => (await connection.runAndReadAll(query)).getRowObjectsJS() as unknown as T[],
    close: () => {
      connection.closeSync();
      instance.closeSync();
      process.off("exit", leave);
      remove();
    },
  };
}

/** A text as a literal of SQL. */
export const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** An error's message in one line, without the advice and settings that DuckDB adds. */
export function messageOf(error: unknown): string {
  const [message = ""] = (error instanceof Error ? error.message : String(error)).split(/\nPossible /, 1);
  return message
    .trim()
    .replace(/\s*\n\s*/g, "; ")
    .slice(0, 600);
}
