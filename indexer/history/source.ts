import { closeSync, createReadStream, openSync, readdirSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createGunzip, gunzipSync } from "node:zlib";
import { type Duck, namedExactly, quote } from "./duck.ts";
import { UnfitHistoryError } from "./history.ts";
import { isIntact } from "./seal.ts";

const HEADER_BYTES = 4_096;
/** What some programs begin a text in UTF-8 with. */
const BYTE_ORDER_MARK = /^\uFEFF/;

interface Column {
  /** Of its text in lower case. */
  readonly pattern: string;
  /** The largest value of a number. */
  readonly most?: bigint;
  readonly expected: string;
}

const HASH = "0x[0-9a-f]{64}";
const ADDRESS = "0x[0-9a-f]{40}";
/** How many bytes a column of hexadecimal has. */
const WIDTHS: Readonly<Record<string, number>> = { transaction: 32, from: 20, to: 20 };

/** The columns of a file of transfers, in the order of a CSV. */
const COLUMNS: Readonly<Record<string, Column>> = {
  block: { pattern: "[0-9]{1,10}", most: 2n ** 31n - 1n, expected: "a block number" },
  time: { pattern: "[0-9]{1,10}", expected: "Unix seconds" },
  transaction: { pattern: HASH, expected: "0x and 64 hex digits" },
  log_index: { pattern: "[0-9]{1,7}", most: 2n ** 20n - 1n, expected: "the log's index in its block" },
  from: { pattern: ADDRESS, expected: "0x and 40 hex digits" },
  to: { pattern: ADDRESS, expected: "0x and 40 hex digits" },
  value: { pattern: "[0-9]{1,19}", most: 2n ** 63n - 1n, expected: "a whole number of atomic units" },
  authorised: { pattern: "(?:true|false)", expected: "true or false" },
};
const NAMES = Object.keys(COLUMNS);

const HEXES = Object.keys(WIDTHS);
const PLAIN = NAMES.filter((name) => !(name in WIDTHS));

/** What is no hexadecimal, as text of one form. */
const LINE = `concat_ws(',', ${PLAIN.map((name) => `"${name}"`).join()})`;
const LINE_PATTERN = quote(PLAIN.map((name) => COLUMNS[name]?.pattern).join());

/** The columns in their types. */
const TYPED = NAMES.map((name) => {
  if (name in WIDTHS) return `"${name}"`;
  return name === "authorised" ? "authorised = 'true' as authorised" : `"${name}"::bigint as "${name}"`;
}).join();
/** Whether a row's numbers are small enough. */
const IN_LIMITS = Object.entries(COLUMNS)
  .flatMap(([name, { most }]) => (most === undefined ? [] : [`"${name}"::bigint <= ${most}`]))
  .join(" and ");

interface Queries {
  /** All columns as text in lower case. */
  readonly text: (files: readonly string[]) => string;
  /**
   * Hexadecimal as bytes, whether those are as long as they should be in `hexes`, the other columns as text in lower case.
   * What is not hexadecimal at all is an error.
   */
  readonly bytes: (files: readonly string[]) => string;
}

/** Files that DuckDB reads with the same queries. */
interface Source extends Queries {
  readonly files: readonly string[];
}

const isParquet = (file: string): boolean => file.endsWith(".parquet");
const isCompressed = (file: string): boolean => file.endsWith(".csv.gz");
const isOfTransfers = (file: string): boolean => file.endsWith(".csv") || isCompressed(file) || isParquet(file);
const KINDS = ".csv, .csv.gz, or .parquet";
const listed = (files: readonly string[]): string => `[${files.map((file) => quote(namedExactly(file))).join()}]`;
/** A folder's name like `value=1` makes no column. */
const FROM_FILES_ALONE = "hive_partitioning = false";

const asBytes = (name: string, type: string): string => (type === "BLOB" ? `"${name}"` : `unhex(substr("${name}", 3))`);
/** Whether bytes, or their text, are as long as they should be. */
function isWhole(name: string, type: string): string {
  const width = WIDTHS[name] ?? 0;
  if (type === "BLOB") return `octet_length("${name}") = ${width}`;
  return `length("${name}") = ${2 + 2 * width} and (starts_with("${name}", '0x') or starts_with("${name}", '0X'))`;
}

/** Queries of columns of these types from a table function. */
function queriesOf(types: (name: string) => string, from: (files: readonly string[]) => string): Queries {
  const text = (name: string) => `${asText(name, types(name))} as "${name}"`;
  const bytes = (name: string) => (name in WIDTHS ? `${asBytes(name, types(name))} as "${name}"` : text(name));
  const hexes = HEXES.map((name) => isWhole(name, types(name))).join(" and ");
  return {
    text: (files) => `select ${NAMES.map(text).join()} from ${from(files)}`,
    bytes: (files) => `select ${NAMES.map(bytes).join()}, ${hexes} as hexes from ${from(files)}`,
  };
}

const CSV_QUERIES = queriesOf(
  (name) => (name === "authorised" ? "LETTER" : "VARCHAR"),
  (files) => {
    const columns = NAMES.map((name) => `'${name}': 'VARCHAR'`).join();
    return `read_csv(${listed(files)}, ${FROM_FILES_ALONE}, auto_detect = false, header = true, delim = ',', quote = '"', escape = '"', columns = {${columns}})`;
  },
);

const isNumber = (name: string): boolean => COLUMNS[name]?.pattern.startsWith("[0-9]") === true;

/** A column of this type as text, in lower case where letters may be right; `LETTER`: `t` and `f` will do. */
function asText(name: string, type: string): string {
  const column = `"${name}"`;
  if (type === "LETTER")
    return `case lower(${column}) when 't' then 'true' when 'f' then 'false' else lower(${column}) end`;
  if (type === "VARCHAR" && isNumber(name)) return column;
  if (type === "BLOB") return `'0x' || lower(hex(${column}))`;
  if (type.startsWith("TIMESTAMP"))
    return `case when epoch_us(${column}) % 1000000 = 0 then (epoch_us(${column}) // 1000000)::varchar else ${column}::varchar end`;
  return `lower(${column}::varchar)`;
}

const asParquet = (files: readonly string[]): string => `read_parquet(${listed(files)}, ${FROM_FILES_ALONE})`;

async function parquetQueries(duck: Duck, file: string): Promise<Queries> {
  const described = await duck.rows<{ column_name: string; column_type: string }>(
    `describe select * from ${asParquet([file])}`,
  );
  const types = new Map(described.map((column) => [column.column_name, column.column_type]));
  const missing = NAMES.filter((name) => !types.has(name));
  if (missing.length > 0) throw new UnfitHistoryError(`${file}: missing column ${missing.join(", ")}`);
  return queriesOf((name) => types.get(name) ?? "", asParquet);
}

/** The beginning of a CSV, of which compressed files need not be whole. */
function beginningOf(file: string): string {
  const beginning = Buffer.alloc(HEADER_BYTES);
  const descriptor = openSync(file, "r");
  const bytes = beginning.subarray(0, readSync(descriptor, beginning));
  closeSync(descriptor);
  const inflated = isCompressed(file) ? gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }) : bytes;
  return inflated.toString("utf8");
}

/** DuckDB takes what is left of a file that was cut off for all of it. */
async function expectWhole(file: string): Promise<void> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  await pipeline(createReadStream(file), createGunzip(), nowhere).catch((error: unknown) => {
    throw new UnfitHistoryError(
      `${file} is damaged or not complete (${messageOf(error)}): expected all of a file compressed by gzip`,
    );
  });
}

function expectHeader(file: string): void {
  const [line = ""] = beginningOf(file).replace(BYTE_ORDER_MARK, "").split(/\r?\n/, 1);
  if (line !== NAMES.join())
    throw new UnfitHistoryError(
      `${file}: expected the header ${NAMES.join()}, got ${JSON.stringify(line.slice(0, 200))}`,
    );
}

/** The files, with those in each folder. @throws UnfitHistoryError if a folder has none. */
export const filesOf = (given: readonly string[]): readonly string[] =>
  given.flatMap((path) => {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [path];
    const found = readdirSync(path).filter(isOfTransfers).sort();
    if (found.length === 0) throw new UnfitHistoryError(`${path}: the folder has no ${KINDS} file`);
    return found.map((name) => join(path, name));
  });

/**
 * The files' transfers as a query of DuckDB: the columns in their types, whether a row `fits`, and its `digest`, of which
 * a history's id is made. DuckDB's hash is taken twice: its last column alone would leave no trace in the sum of rows that
 * exchange it. A row that does not fit may also be an error of the query: `whatIsWrong` says which it is.
 * @throws UnfitHistoryError if a file's name, header or columns are not as docs/index.md describes.
 */
export async function openTransfers(duck: Duck, files: readonly string[]): Promise<string> {
  const sources = await sourcesOf(duck, files);
  const all = sources.map((source) => source.bytes(source.files)).join(" union all ");
  return `select ${TYPED}, coalesce(hexes and regexp_full_match(line, ${LINE_PATTERN}) and ${IN_LIMITS}, false) as fits,
    hash(hash(${NAMES.map((name) => `"${name}"`).join()})) as digest
    from (select *, ${LINE} as line from (${all}))`;
}

async function sourcesOf(duck: Duck, files: readonly string[]): Promise<readonly Source[]> {
  const byQuery = new Map<string, Source & { readonly files: string[] }>();
  for (const file of files) {
    const queries = await openFile(duck, file);
    const known = byQuery.get(queries.text([]));
    if (known === undefined) byQuery.set(queries.text([]), { files: [file], ...queries });
    else known.files.push(file);
  }
  return [...byQuery.values()];
}

async function openFile(duck: Duck, file: string): Promise<Queries> {
  if (!isOfTransfers(file)) throw new UnfitHistoryError(`${file}: expected a ${KINDS} file`);
  try {
    if (!statSync(file).isFile()) throw new UnfitHistoryError(`${file}: expected a file`);
    if (isParquet(file)) {
      if ((await isIntact(file)) === false)
        throw new UnfitHistoryError(
          `${file} is damaged: it is not what was fetched. Remove it, and run npm run index:fetch again`,
        );
      return await parquetQueries(duck, file);
    }
    if (isCompressed(file)) await expectWhole(file);
    expectHeader(file);
    return CSV_QUERIES;
  } catch (error) {
    throw error instanceof UnfitHistoryError ? error : new UnfitHistoryError(`${file}: ${messageOf(error)}`);
  }
}

const MESSAGE_CHARACTERS = 600;

/** In one line, without the advice and settings that DuckDB adds. */
export const messageOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error))
    .split(/\nPossible /, 1)
    .join()
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join("; ")
    .slice(0, MESSAGE_CHARACTERS);

/** The file that an error of DuckDB's is about, where it says so. */
export const fileOf = (error: unknown): string | null =>
  (error instanceof Error ? /^ {2}file = (.+)$/m.exec(error.message)?.[1] : null) ?? null;

const MOST_NAMED = 3;

/** A few names in words. */
export const inWords = (files: readonly string[]): string =>
  [...files.slice(0, MOST_NAMED), ...(files.length > MOST_NAMED ? [`${files.length - MOST_NAMED} more`] : [])].join(
    " and ",
  );

/** Those of the files that have transfers of which this is true. */
export async function filesWith(duck: Duck, files: readonly string[], condition: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const source of await sourcesOf(duck, files))
    for (const file of source.files) {
      const rows = await duck.rows(
        `select 1 from (select ${TYPED} from (${source.text([file])})) where ${condition} limit 1`,
      );
      if (rows.length > 0) found.push(file);
    }
  return found;
}

/** Whether a column is as it should be. */
function fits(name: string): string {
  const { pattern, most } = COLUMNS[name] as Column;
  const limit = most === undefined ? "" : ` and try_cast("${name}" as hugeint) <= ${most}`;
  return `coalesce(regexp_full_match("${name}", '${pattern}')${limit}, false)`;
}

/** Which row of which file is the first that is wrong, and how; null if none is. */
export async function whatIsWrong(duck: Duck, files: readonly string[]): Promise<string | null> {
  await duck.run("set preserve_insertion_order = true");
  for (const source of await sourcesOf(duck, files))
    for (const file of source.files) {
      const [row] = await duck.rows<Readonly<Record<string, unknown>>>(
        `select * from (select row_number() over () as row, ${NAMES.map((name) => `${fits(name)} as "${name} fits", "${name}"`).join()}
          from (${source.text([file])})) where not (${NAMES.map((name) => `"${name} fits"`).join(" and ")}) limit 1`,
      );
      const name = NAMES.find((one) => row?.[`${one} fits`] === false);
      if (row === undefined || name === undefined) continue;
      const place = isParquet(file) ? `row ${row.row}` : `line ${Number(row.row) + 1}`;
      return `${file}, ${place}: ${name} is ${JSON.stringify(row[name] ?? "")}, expected ${COLUMNS[name]?.expected}`;
    }
  return null;
}
