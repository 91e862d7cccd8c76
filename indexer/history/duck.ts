import { mkdirSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type DuckDBDataChunk, DuckDBInstance, type DuckDBResult } from "@duckdb/node-api";
import bindings from "@duckdb/node-bindings";

/** What DuckDB keeps in memory; the rest goes to its folder. The process needs about half as much again. */
const MEMORY = "2GB";
/** Each thread sorts in memory of its own. */
const MOST_THREADS = Math.min(4, availableParallelism());

setFlagsFromString("--expose-gc");
/** V8 does not know how much memory of DuckDB's its objects hold, so it would keep gigabytes of them. */
const collectGarbage: () => void = runInNewContext("gc");

/** A column of some rows, as DuckDB keeps it in memory. */
export interface Vector {
  /** Of all rows; a value of 8 bytes has two, one of 16 bytes four, each with the lowest first. */
  readonly words: Uint32Array;
  /** Null if no row's value is. */
  readonly isNull: ((row: number) => boolean) | null;
  /** Those of a blob. */
  readonly bytes: (row: number) => Uint8Array;
}

export interface Rows {
  /** Owns the vectors' memory: who reads these holds the rows. */
  readonly chunk: DuckDBDataChunk;
  readonly count: number;
  readonly vectors: readonly Vector[];
}

export interface Result {
  /** Its columns' types, like `INTEGER`. */
  readonly types: readonly string[];
  /** May be called until it gives null. */
  readonly next: () => Promise<Rows | null>;
}

/** Neither memory nor the folder's disk holds what DuckDB has to keep. */
export class NoRoomError extends Error {
  override readonly name = "NoRoomError";

  constructor(folder: string, cause: Error) {
    const [reason] = cause.message.split(/\.?\n/, 1);
    super(`There is too little room in ${folder}: ${reason}. Set TMPDIR to a folder on a larger disk`, { cause });
  }
}

const isForRoom = (error: unknown): error is Error =>
  error instanceof Error && /out of memory|no space left|could not write/i.test(error.message);

/** A DuckDB database of our own that is gone when it is closed, or when the process exits. */
export interface Duck {
  readonly run: (statement: string) => Promise<void>;
  /** Rows with numbers, text, bytes, and booleans; a bigint where DuckDB's type is 64 bits wide or more. */
  readonly rows: <T>(query: string) => Promise<readonly T[]>;
  /** For many rows: their memory instead of a value of JavaScript for each. They are complete, in their order. */
  readonly result: (query: string) => Promise<Result>;
  /** Where it keeps what memory does not hold; other files there are removed with it. */
  readonly folder: string;
  readonly close: () => void;
}

/**
 * Opens an empty database that uses this folder, whose previous content is removed: only one process at a time may use
 * it. Tables are in memory until that is full: on a disk each would be compressed, for one reading.
 * DuckDB's extensions come with it; it fetches none.
 */
export async function openDuck(folder: string, threads = MOST_THREADS): Promise<Duck> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const instance = await DuckDBInstance.create(":memory:", {
    threads: String(threads),
    memory_limit: MEMORY,
    temp_directory: join(folder, "spilled"),
    preserve_insertion_order: "false",
    // With `order by block::integer … limit 1` it leaves rows out: https://github.com/duckdb/duckdb/issues/25158
    disabled_optimizers: "top_n",
    ...{ autoinstall_known_extensions: "false", autoload_known_extensions: "false" },
  });
  const connection = await instance.connect();
  const named = (error: unknown): never => {
    throw isForRoom(error) ? new NoRoomError(folder, error) : error;
  };
  const remove = () => rmSync(folder, { recursive: true, force: true });
  // The process would wait for the end of a query.
  const leave = () => {
    connection.interrupt();
    remove();
  };
  process.once("exit", leave);
  return {
    folder,
    run: async (statement) => void (await connection.run(statement).catch(named)),
    rows: async <T>(query: string) =>
      (await connection.runAndReadAll(query).catch(named)).getRowObjectsJS() as unknown as T[],
    result: async (query) => resultOf(await connection.run(query).catch(named)),
    close: () => {
      connection.closeSync();
      instance.closeSync();
      process.off("exit", leave);
      remove();
    },
  };
}

function resultOf(result: DuckDBResult): Result {
  const types = result.columnTypes().map(String);
  let rest: DuckDBResult | null = result;
  const next = async () => {
    const chunk = (await rest?.fetchChunk()) ?? null;
    if (chunk !== null && chunk.rowCount > 0) return rowsOf(chunk, types);
    if (rest !== null) {
      rest = null;
      collectGarbage();
    }
    return null;
  };
  return { types, next };
}

/** How many words a value takes. A text or blob is its length and then itself, or its first word and address. */
const WORDS: Readonly<Record<string, number>> = { INTEGER: 1, UINTEGER: 1, BIGINT: 2, HUGEINT: 4, UUID: 4, BLOB: 4 };
const SHORT_BLOB_BYTES = 12;

const rowsOf = (chunk: DuckDBDataChunk, types: readonly string[]): Rows => ({
  chunk,
  count: chunk.rowCount,
  vectors: types.map((type, column) =>
    vectorOf(bindings.data_chunk_get_vector(chunk.chunk, column), type, chunk.rowCount),
  ),
});

function vectorOf(vector: bindings.Vector, type: string, count: number): Vector {
  const width = WORDS[type];
  if (width === undefined) throw new Error(`A column of type ${type} is not read as rows of memory`);
  const { buffer, byteOffset } = bindings.vector_get_data(vector, count * width * 4);
  const valid: Uint8Array | null = bindings.vector_get_validity(vector, Math.ceil(count / 64) * 8);
  const words = new Uint32Array(buffer, byteOffset, count * width);
  return {
    words,
    isNull: valid === null ? null : (row) => ((valid[row >> 3] ?? 0) & (1 << (row & 7))) === 0,
    bytes: (row) => {
      const [length = 0, at] = [words[row * 4], byteOffset + row * 16];
      if (length <= SHORT_BLOB_BYTES) return new Uint8Array(buffer, at + 4, length);
      return bindings.get_data_from_pointer(buffer as ArrayBuffer, at + 8, length);
    },
  };
}

/** A text as a literal of SQL. */
export const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** A file's name as DuckDB takes it, which would read `*`, `?`, and `[` as patterns of other files' names. */
export const namedExactly = (file: string): string => file.replace(/[*?[]/g, "[$&]");
