import { mkdirSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";

/** A temporary DuckDB database. It is removed when it is closed or the process exits. */
export interface Duck {
  readonly run: (statement: string) => Promise<void>;
  /** Returns rows, with a bigint for types of 64 bits or more. */
  readonly rows: <T>(query: string) => Promise<readonly T[]>;
  /** The folder of its temporary files. Other files in the folder are removed with them. */
  readonly folder: string;
  readonly close: () => void;
}

/** Opens a database that uses this folder, and removes its previous content. Only one process at a time may use it. */
export async function openDuck(folder: string): Promise<Duck> {
  const remove = () => rmSync(folder, { recursive: true, force: true });
  remove();
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const instance = await DuckDBInstance.create(":memory:", {
    // Each thread sorts in its own memory.
    threads: String(Math.min(4, availableParallelism())),
    memory_limit: "2GB",
    temp_directory: join(folder, "spilled"),
    preserve_insertion_order: "false",
    // It drops rows when ordering by a cast: https://github.com/duckdb/duckdb/issues/25158
    disabled_optimizers: "top_n",
    ...{ autoinstall_known_extensions: "false", autoload_known_extensions: "false" },
  });
  const connection = await instance.connect();
  // Otherwise the process would wait for a running query.
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

export const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** Returns an error's message in one line, without the advice and settings that DuckDB adds. */
export function messageOf(error: unknown): string {
  const [message = ""] = (error instanceof Error ? error.message : String(error)).split(/\nPossible /, 1);
  return message
    .trim()
    .replace(/\s*\n\s*/g, "; ")
    .slice(0, 600);
}
