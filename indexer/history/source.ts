import { closeSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { constants, gunzipSync } from "node:zlib";
import { type Duck, quote } from "./duck.ts";
import { UnfitHistoryError } from "./history.ts";

const HEADER_BYTES = 4_096;

interface Column {
  /** Of its text in lower case. */
  readonly pattern: string;
  /** The largest value of a number. */
  readonly most?: bigint;
  readonly expected: string;
}

const HASH = "0x[0-9a-f]{64}";
const ADDRESS = "0x[0-9a-f]{40}";

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

/** A transfer as text of one form: what is checked, and what a history's id is a hash of. */
export const LINE = `concat_ws(',', ${NAMES.map((name) => `"${name}"`).join()})`;
export const LINE_PATTERN = quote(
  Object.values(COLUMNS)
    .map(({ pattern }) => pattern)
    .join(),
);

const isNumber = (name: string): boolean => COLUMNS[name]?.pattern.startsWith("[0-9]") ?? false;

/** Files that DuckDB reads with the same query. */
interface Source {
  readonly files: readonly string[];
  readonly query: (files: readonly string[]) => string;
}

const isParquet = (file: string): boolean => file.endsWith(".parquet");
const isCompressed = (file: string): boolean => file.endsWith(".csv.gz");
const listed = (files: readonly string[]): string => `[${files.map(quote).join()}]`;

/** In the file's order, so that the error can name the line. */
const csvQuery = (files: readonly string[]): string => {
  const columns = NAMES.map((name) => `'${name}': 'VARCHAR'`).join();
  const settings = `auto_detect = false, header = true, delim = ',', quote = '"', escape = '"', columns = {${columns}}`;
  const selected = NAMES.map((name) => {
    if (name !== "authorised") return `lower("${name}") as "${name}"`;
    return "case lower(authorised) when 't' then 'true' when 'f' then 'false' else lower(authorised) end as authorised";
  });
  return `select ${selected.join()} from read_csv(${listed(files)}, ${settings})`;
};

/** A Parquet column of this type as the text it would be in a CSV. */
function asText(name: string, type: string): string {
  const column = `"${name}"`;
  if (type === "BLOB") return `'0x' || lower(hex(${column}))`;
  if (type.startsWith("TIMESTAMP"))
    return `case when epoch_us(${column}) % 1000000 = 0 then (epoch_us(${column}) // 1000000)::varchar else ${column}::varchar end`;
  return `lower(${column}::varchar)`;
}

async function parquetQuery(duck: Duck, file: string): Promise<Source["query"]> {
  const described = await duck.rows<{ column_name: string; column_type: string }>(
    `describe select * from read_parquet(${quote(file)})`,
  );
  const types = new Map(described.map((column) => [column.column_name, column.column_type]));
  const missing = NAMES.filter((name) => !types.has(name));
  if (missing.length > 0) throw new UnfitHistoryError(`${file}: missing column ${missing.join(", ")}`);
  const selected = NAMES.map((name) => `${asText(name, types.get(name) ?? "")} as "${name}"`).join();
  return (files) => `select ${selected} from read_parquet(${listed(files)})`;
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

function expectHeader(file: string): void {
  const [line = ""] = beginningOf(file).split(/\r?\n/, 1);
  if (line !== NAMES.join())
    throw new UnfitHistoryError(
      `${file}: expected the header ${NAMES.join()}, got ${JSON.stringify(line.slice(0, 200))}`,
    );
}

/** The files, with those of Parquet in each folder. @throws UnfitHistoryError if a folder has none. */
export const filesOf = (given: readonly string[]): readonly string[] =>
  given.flatMap((path) => {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [path];
    const found = readdirSync(path).filter(isParquet).sort();
    if (found.length === 0) throw new UnfitHistoryError(`${path}: the folder has no .parquet file`);
    return found.map((name) => join(path, name));
  });

/**
 * The files' transfers as a query of DuckDB: their columns as text in lower case.
 * @throws UnfitHistoryError if a file's name, header or columns are not as docs/index.md describes.
 */
export async function openTransfers(duck: Duck, files: readonly string[]): Promise<string> {
  const sources = await sourcesOf(duck, files);
  return sources.map((source) => source.query(source.files)).join(" union all ");
}

async function sourcesOf(duck: Duck, files: readonly string[]): Promise<readonly Source[]> {
  const byQuery = new Map<string, Source & { readonly files: string[] }>();
  for (const file of files) {
    const query = await queryOf(duck, file);
    const known = byQuery.get(query([]));
    if (known === undefined) byQuery.set(query([]), { files: [file], query });
    else known.files.push(file);
  }
  return [...byQuery.values()];
}

async function queryOf(duck: Duck, file: string): Promise<Source["query"]> {
  if (!file.endsWith(".csv") && !isCompressed(file) && !isParquet(file))
    throw new UnfitHistoryError(`${file}: expected a .csv, .csv.gz, or .parquet file`);
  try {
    if (!statSync(file).isFile()) throw new UnfitHistoryError(`${file}: expected a file`);
    if (isParquet(file)) return await parquetQuery(duck, file);
    expectHeader(file);
    return csvQuery;
  } catch (error) {
    throw error instanceof UnfitHistoryError ? error : new UnfitHistoryError(`${file}: ${messageOf(error)}`);
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Whether a column is as it should be. */
function fits(name: string): string {
  const { pattern, most } = COLUMNS[name] as Column;
  const limit = most === undefined ? "" : ` and try_cast("${name}" as hugeint) <= ${most}`;
  return `coalesce(regexp_full_match("${name}", '${pattern}')${limit}, false)`;
}

/** Which row of which file is the first that is wrong, and how. */
export async function whatIsWrong(duck: Duck, files: readonly string[]): Promise<string> {
  await duck.run("set preserve_insertion_order = true");
  for (const source of await sourcesOf(duck, files))
    for (const file of source.files) {
      const [row] = await duck.rows<Readonly<Record<string, unknown>>>(
        `select * from (select row_number() over () as row, ${NAMES.map((name) => `${fits(name)} as "${name} fits", "${name}"`).join()}
          from (${source.query([file])})) where not (${NAMES.map((name) => `"${name} fits"`).join(" and ")}) limit 1`,
      );
      const name = NAMES.find((one) => row?.[`${one} fits`] === false);
      if (row === undefined || name === undefined) continue;
      const place = isParquet(file) ? `row ${row.row}` : `line ${Number(row.row) + 1}`;
      return `${file}, ${place}: ${name} is ${JSON.stringify(row[name] ?? "")}, expected ${COLUMNS[name]?.expected}`;
    }
  return `${files.join(", ")}: a row is not as docs/index.md describes`;
}

/** The columns in their types, from the text of a row that fits. */
export const TYPED = NAMES.map((name) => {
  if (isNumber(name)) return `try_cast("${name}" as bigint) as "${name}"`;
  if (name === "transaction") return "case when fits then unhex(substr(transaction, 3)) end as transaction";
  return name === "authorised" ? "authorised = 'true' as authorised" : `"${name}"`;
}).join();
/** Whether a row's numbers are small enough. */
export const IN_LIMITS = Object.entries(COLUMNS)
  .flatMap(([name, { most }]) => (most === undefined ? [] : [`coalesce("${name}" <= ${most}, false)`]))
  .join(" and ");
