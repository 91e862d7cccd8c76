import { createReadStream, createWriteStream, readdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { LastingError } from "../ledger.ts";
import { type Duck, messageOf, quote } from "./duck.ts";

/** `pattern` matches the lower-case text, `most` is the largest value of a number, and `type` is the type in `raw`. */
interface Column extends Readonly<Record<"pattern" | "expected" | "type", string>> {
  readonly most?: bigint;
}

const hex = (bytes: number): Column => ({
  ...{ pattern: `0x[0-9a-f]{${2 * bytes}}`, expected: `0x and ${2 * bytes} hex digits`, type: "blob" },
});
const number = (bits: number, expected: string): Column => ({
  ...{ pattern: "[0-9]{1,19}", most: 2n ** BigInt(bits) - 1n, expected, type: bits > 31 ? "bigint" : "integer" },
});

/** The columns of a file of transfers, in the order of a CSV file. */
const COLUMNS: Readonly<Record<string, Column>> = {
  block: number(31, "a block number"),
  time: number(34, "Unix seconds"),
  transaction: hex(32),
  log_index: number(20, "the log's index in its block"),
  from: hex(20),
  to: hex(20),
  value: number(63, "a whole number of atomic units"),
  authorized: { pattern: "(?:true|false|t|f)", expected: "true or false", type: "boolean" },
};
const NAMES = Object.keys(COLUMNS);
export const HEADER = NAMES.join();
const each = (sql: (column: string, of: Column) => string): string =>
  Object.entries(COLUMNS)
    .map(([name, column]) => sql(`"${name}"`, column))
    .join();

/** The transfers of all files, with the file numbers. */
export const RAW_TABLE = `create table raw (file integer, ${each((name, { type }) => `${name} ${type}`)})`;
const VALUES = each((name, { type }) => (type === "blob" ? `unhex(${name}[3:])` : `${name}::${type}`));
/** The name of the first invalid column. */
const WRONG = `coalesce(${each((name, { pattern, most }) => {
  const limit = most === undefined ? "" : ` and try_cast(${name} as hugeint) <= ${most}`;
  return `case when regexp_full_match(${name}, '${pattern}')${limit} then null else '${name.slice(1, -1)}' end`;
})})`;

const isCompressed = (file: string): boolean => file.endsWith(".csv.gz");
export const isOfTransfers = (file: string): boolean => file.endsWith(".csv") || isCompressed(file);
const KINDS = ".csv or .csv.gz";

/** Returns the files, including the files in each folder. @throws LastingError if a folder has none. */
export const filesOf = (given: readonly string[]): readonly string[] =>
  given.flatMap((path) => {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [path];
    const found = readdirSync(path).filter((name) => isOfTransfers(name) && !name.startsWith("."));
    if (found.length === 0) throw new LastingError(`${path}: the folder has no ${KINDS} file`);
    return found.sort().map((name) => join(path, name));
  });

/**
 * Adds a file's transfers to `raw`.
 * @throws LastingError with the line if the file does not match docs/index-history.md
 */
export async function addFile(duck: Duck, file: string, number: number): Promise<void> {
  // DuckDB would treat `*`, `?`, and `[` in the file's own name as patterns.
  const csv = join(duck.folder, "transfers.csv");
  try {
    if (!isOfTransfers(file)) throw new Error(`expected a ${KINDS} file`);
    if (!statSync(file).isFile()) throw new Error("expected a file");
    if (isCompressed(file)) await unpack(file, csv);
    else symlinkSync(resolve(file), csv);
    await expectHeader(csv);
    const text = `select ${each((name) => `lower(${name}) as ${name}`)} from read_csv(${quote(csv)}, hive_partitioning = false,
      auto_detect = false, header = true, delim = ',', quote = '"', escape = '"', columns = {${each((name) => `${name}: 'VARCHAR'`)}})`;
    const [row] = await duck.rows<Readonly<Record<string, string | null>> & { row: bigint; wrong: string }>(
      `select * from (select *, row_number() over () as row, ${WRONG} as wrong from (${text})) where wrong is not null limit 1`,
    );
    if (row !== undefined) {
      const found = `${row.wrong} is ${JSON.stringify(row[row.wrong] ?? "")}`;
      throw new Error(`line ${row.row + 1n}: ${found}, expected ${COLUMNS[row.wrong]?.expected}`);
    }
    await duck.run(`insert into raw select ${number}, ${VALUES} from (${text})`);
  } catch (error) {
    throw new LastingError(`${file}: ${messageOf(error)}`);
  } finally {
    rmSync(csv, { force: true });
  }
}

/** DuckDB would accept a truncated file. */
const unpack = (file: string, into: string): Promise<void> =>
  pipeline(createReadStream(file), createGunzip(), createWriteStream(into)).catch((error: unknown) => {
    throw new Error(`damaged or incomplete (${messageOf(error)}); expected a complete gzip file`);
  });

async function expectHeader(csv: string): Promise<void> {
  const beginning = await createReadStream(csv, { end: 4_095, encoding: "utf8" }).toArray();
  // Some programs write a byte order mark first.
  const [line] = beginning
    .join("")
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/, 1);
  if (line !== HEADER) throw new Error(`expected the header ${HEADER}, got ${JSON.stringify(line?.slice(0, 200))}`);
}
