import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { UnfitHistoryError } from "./history.ts";
import { readParquet } from "./parquet.ts";

/** The file's transfers as CSV with a header. @throws UnfitHistoryError if its name does not reveal its format. */
export function openTransfers(file: string): Readable {
  if (file.endsWith(".csv")) return createReadStream(file);
  if (file.endsWith(".csv.gz")) return createReadStream(file).compose(createGunzip());
  if (file.endsWith(".parquet")) return Readable.from(readParquet(file), { objectMode: false });
  throw new UnfitHistoryError(`${file}: expected a .csv, .csv.gz, or .parquet file`);
}
