import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { asyncBufferFromFile, type ColumnData, type Compressors, parquetMetadataAsync, parquetRead } from "hyparquet";
import { UnfitHistoryError } from "./history.ts";

const COLUMNS = ["block", "time", "transaction", "log_index", "from", "to", "value", "authorised"];
/** hyparquet itself includes Snappy. */
const COMPRESSORS: Compressors = {
  GZIP: (bytes) => gunzipSync(bytes),
  ZSTD: (bytes) => zstdDecompressSync(bytes),
  BROTLI: (bytes) => brotliDecompressSync(bytes),
};
const LINES_A_CHUNK = 10_000;

/**
 * The rows of a Parquet file as CSV with a header. Hashes and addresses may be text or bytes, times may be seconds or
 * timestamps, the value an integer, a decimal or text.
 * @throws UnfitHistoryError if a column is missing or has a value of any other kind.
 */
export async function* readParquet(path: string): AsyncGenerator<string> {
  const file = await asyncBufferFromFile(path);
  const metadata = await parquetMetadataAsync(file);
  const names = metadata.schema.map(({ name }) => name);
  const missing = COLUMNS.filter((name) => !names.includes(name));
  if (missing.length > 0) throw new UnfitHistoryError(`${path}: missing column ${missing.join(", ")}`);
  yield `${COLUMNS.join()}\n`;
  let rowStart = 0;
  for (const { num_rows } of metadata.row_groups) {
    const rowEnd = rowStart + Number(num_rows);
    const columns = new Map<string, string[]>(COLUMNS.map((name) => [name, []]));
    const onChunk = ({ columnName, columnData }: ColumnData) => {
      const cells = columns.get(columnName) ?? [];
      for (const value of columnData) cells.push(cellOf(value, columnName));
    };
    await parquetRead({
      file,
      metadata,
      columns: COLUMNS,
      rowStart,
      rowEnd,
      onChunk,
      compressors: COMPRESSORS,
      utf8: false,
    });
    yield* linesOf([...columns.values()], rowEnd - rowStart);
    rowStart = rowEnd;
  }
}

function* linesOf(columns: readonly (readonly string[])[], count: number): Generator<string> {
  for (let start = 0; start < count; start += LINES_A_CHUNK) {
    const lines = Array.from({ length: Math.min(LINES_A_CHUNK, count - start) }, (_, n) =>
      columns.map((cells) => cells[start + n]).join(),
    );
    yield `${lines.join("\n")}\n`;
  }
}

function cellOf(value: unknown, column: string): string {
  if (typeof value === "bigint" || typeof value === "boolean" || Number.isSafeInteger(value)) return String(value);
  if (value instanceof Date) return String(value.getTime() / 1000);
  if (value instanceof Uint8Array) return `0x${Buffer.from(value).toString("hex")}`;
  if (typeof value === "string" && /^\w+$/.test(value)) return value;
  throw new UnfitHistoryError(`column ${column} contains an unreadable value: ${String(value)}`);
}
