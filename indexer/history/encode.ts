import { columnsOf } from "../columns.ts";
import type { Duck, Result, Rows, Vector } from "./duck.ts";
import { HISTORY_TABLES, type HistoryTable } from "./tables.ts";

// Rows of DuckDB in PostgreSQL's binary format of COPY
// (https://www.postgresql.org/docs/current/sql-copy.html#SQL-COPY-FILE-FORMATS), from memory to memory.

const CHUNK_BYTES = 1 << 18;
/** More than any row takes; its longest value has the ages of a day, of 90 at most. */
const ROW_BYTES = 1 << 10;
const NULL = -1;
/** What begins with it: flags, and the length of an extension. */
const HEADER = Buffer.from("PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", "latin1");
const END = Buffer.from([0xff, 0xff]);

/** Where the next byte goes. */
interface Output {
  readonly view: DataView;
  at: number;
}

/** Writes a row's value, with its length before it. */
type Write = (output: Output, row: number) => void;

function word(output: Output, value: number): void {
  output.view.setInt32(output.at, value);
  output.at += 4;
}

const orNull = ({ isNull }: Vector, write: Write): Write =>
  isNull === null
    ? write
    : (output, row) => {
        if (isNull(row)) word(output, NULL);
        else write(output, row);
      };

/** A value of a fixed number of words, the highest first. */
const fixed =
  ({ words }: Vector, count: number): Write =>
  (output, row) => {
    word(output, 4 * count);
    for (let place = count - 1; place >= 0; place -= 1) word(output, words[row * count + place] ?? 0);
  };

/** DuckDB's order of UUIDs is that of signed numbers, with this bit turned. */
const SIGN = 0x80000000;

function uuid(output: Output, { words }: Vector, row: number): void {
  word(output, (words[row * 4 + 3] ?? 0) ^ SIGN);
  for (let place = 2; place >= 0; place -= 1) word(output, words[row * 4 + place] ?? 0);
}

const hash =
  (high: Vector, low: Vector): Write =>
  (output, row) => {
    word(output, 32);
    uuid(output, high, row);
    uuid(output, low, row);
  };

const blob =
  ({ bytes }: Vector): Write =>
  (output, row) => {
    const value = bytes(row);
    word(output, value.length);
    new Uint8Array(output.view.buffer).set(value, output.at);
    output.at += value.length;
  };

const DIGIT = 10_000;
const EXACT = Number.MAX_SAFE_INTEGER;

/** A whole number that is not negative: how many digits to base 10,000, the first one's weight, sign, scale, digits. */
const numeric = ({ words }: Vector): Write => {
  const digits = new Int16Array(16);
  return (output, row) => {
    const at = (place: number): number => words[row * 4 + place] ?? 0;
    let rest = at(1) * 2 ** 32 + at(0);
    let count = 0;
    if (at(2) !== 0 || at(3) !== 0 || rest > EXACT) {
      let all = [3, 2, 1, 0].reduce((sum, place) => (sum << 32n) | BigInt(at(place)), 0n);
      for (; all > EXACT; all /= BigInt(DIGIT)) digits[count++] = Number(all % BigInt(DIGIT));
      rest = Number(all);
    }
    for (; rest > 0; rest = Math.floor(rest / DIGIT)) digits[count++] = rest % DIGIT;
    word(output, 8 + 2 * count);
    word(output, (count << 16) | (Math.max(count - 1, 0) & 0xffff));
    word(output, 0);
    for (let place = count - 1; place >= 0; place -= 1, output.at += 2)
      output.view.setInt16(output.at, digits[place] ?? 0);
  };
};

const address =
  ({ words: numbers }: Vector, addresses: Uint32Array): Write =>
  (output, row) => {
    const first = (numbers[row] ?? 0) * ADDRESS_WORDS;
    word(output, 4 * ADDRESS_WORDS);
    for (let place = 0; place < ADDRESS_WORDS; place += 1) word(output, addresses[first + place] ?? 0);
  };

const ADDRESS_WORDS = 5;

/** The addresses of all wallets by their numbers, from 1 on: five words each, the highest first. */
export async function readAddresses(duck: Duck, wallets: number): Promise<Uint32Array> {
  const addresses = new Uint32Array((wallets + 1) * ADDRESS_WORDS);
  const names = await duck.result("select id, name[1:16]::uuid, name[17:20]::bit::uinteger from names");
  for (let rows = await names.next(); rows !== null; rows = await names.next()) {
    const [id, high, low] = rows.vectors.map(({ words }) => words);
    for (let row = 0; row < rows.count; row += 1) {
      const first = (id?.[row] ?? 0) * ADDRESS_WORDS;
      for (let place = 0; place < 4; place += 1) addresses[first + place] = high?.[row * 4 + 3 - place] ?? 0;
      addresses[first] = (addresses[first] ?? 0) ^ SIGN;
      addresses[first + 4] = low?.[row] ?? 0;
    }
  }
  return addresses;
}

/** How values of DuckDB's types become those of PostgreSQL's; a hash is two of DuckDB's columns. */
const WRITERS: Readonly<Record<string, (vectors: readonly [Vector, Vector], addresses: Uint32Array) => Write>> = {
  "INTEGER to integer": ([vector]) => fixed(vector, 1),
  "BIGINT to bigint": ([vector]) => fixed(vector, 2),
  "HUGEINT to numeric(78,0)": ([vector]) => numeric(vector),
  "INTEGER to bytea": ([vector], addresses) => address(vector, addresses),
  "UUID to bytea": ([high, low]) => hash(high, low),
  "BLOB to bytea": ([vector]) => blob(vector),
};

const HASH = "UUID";
const PLACES = columnsOf("selective");

interface Column {
  /** Of DuckDB's, its first. */
  readonly place: number;
  readonly writer: string;
}

/** @throws if a query gives other types than its table takes */
function columnsFor(table: HistoryTable, types: readonly string[]): readonly Column[] {
  const described = new Map(PLACES[table]?.map((column) => column.split(" ").slice(0, 2) as [string, string]));
  let place = 0;
  const columns = HISTORY_TABLES[table].map((name): Column => {
    const column = { place, writer: `${types[place]} to ${described.get(name)}` };
    place += types[place] === HASH ? 2 : 1;
    if (!(column.writer in WRITERS)) throw new Error(`The column ${name} of ${table} cannot be ${column.writer}`);
    return column;
  });
  if (place !== types.length) throw new Error(`The query of ${table} has ${types.length} columns instead of ${place}`);
  return columns;
}

/** What `copy … from stdin (format binary)` takes to fill a table. */
export async function* encodeRows(table: HistoryTable, result: Result, addresses: Uint32Array): AsyncGenerator<Buffer> {
  const columns = columnsFor(table, result.types);
  yield HEADER;
  for (let rows = await result.next(); rows !== null; rows = await result.next()) {
    const writes = writesOf(columns, rows, addresses);
    for (let row = 0; row < rows.count; ) {
      const output: Output = { view: new DataView(new ArrayBuffer(CHUNK_BYTES)), at: 0 };
      row = writeRows(writes, output, { from: row, to: rows.count });
      yield Buffer.from(output.view.buffer, 0, output.at);
    }
  }
  yield END;
}

const writesOf = (columns: readonly Column[], { vectors }: Rows, addresses: Uint32Array): readonly Write[] =>
  columns.map(({ place, writer }) => {
    const both = vectors.slice(place, place + 2) as [Vector, Vector];
    return orNull(both[0], WRITERS[writer]?.(both, addresses) as Write);
  });

/** Returns the row after the last one for which there was room. */
function writeRows(
  writes: readonly Write[],
  output: Output,
  { from, to }: { readonly from: number; readonly to: number },
): number {
  let row = from;
  for (; row < to && output.at < CHUNK_BYTES - ROW_BYTES; row += 1) {
    output.view.setInt16(output.at, writes.length);
    output.at += 2;
    for (const write of writes) write(output, row);
  }
  return row;
}
