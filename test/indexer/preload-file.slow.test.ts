import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { readHistory } from "../../indexer/history/history.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { freshDatabase } from "../support/service/database.ts";
import { FILE, historyRows, load, schemasIn } from "./preloaded.ts";

const text = readFileSync(FILE, "utf8");
const [header = "", ...lines] = text.trimEnd().split("\n");

const folder = await folderForFile("trust-preload-file-");
const databaseUrl = (await freshDatabase()).ownerUrl;
const pool = await forFile(new pg.Pool({ connectionString: databaseUrl, max: 2 }));
const rowsOf = () => historyRows(pool);
const schemas = () => schemasIn(pool);

function written(name: string, content: string | Buffer): string {
  const file = join(folder, name);
  writeFileSync(file, content);
  return file;
}

describe("a file of transfers", () => {
  test("It gives the same rows when it is compressed", async () => {
    const { id, ...history } = await load(databaseUrl, FILE);
    const rows = await rowsOf();
    expect(history).toMatchObject({ firstBlock: 1, lastBlock: 5, scope: "full" });
    expect(rows.pair).toHaveLength(36);
    const compressed = await load(databaseUrl, written("transfers.csv.gz", gzipSync(text)));
    expect(compressed).toEqual({ id: compressed.id, ...history });
    expect(compressed.id).not.toBe(id);
    expect(await rowsOf()).toEqual(rows);
  });

  test("Its addresses and hashes may be in upper case, and its lines in any order", async () => {
    await load(databaseUrl, FILE);
    const rows = await rowsOf();
    const capitals = lines.map((line) => line.replace(/0x([0-9a-f]+)/g, (_, digits) => `0x${digits.toUpperCase()}`));
    await load(databaseUrl, written("capitals.csv", [header, ...capitals.toReversed(), ""].join("\n")));
    expect(await rowsOf()).toEqual(rows);
  });

  test("It ends at its last transfer for any distribution over DuckDB's row groups", async () => {
    const word = (n: number, digits: number) => `0x${n.toString(16).padStart(digits, "0")}`;
    const line = (n: number) =>
      [n, 1_700_000_000 + n, word(n, 64), 0, word(1 + (n % 97), 40), word(200 + (n % 101), 40), n, true].join();
    const many = Array.from({ length: 60_000 }, (_, index) => line(index + 1));
    const { firstBlock, lastBlock, marks } = await load(databaseUrl, written("many.csv", [header, ...many].join("\n")));
    expect([firstBlock, lastBlock]).toEqual([1, 60_000]);
    expect(marks.map(({ transaction }) => transaction)).toEqual([word(1, 64), word(60_000, 64)]);
  });

  test("Its name is taken literally, even if it looks like a pattern or a partition", async () => {
    await load(databaseUrl, FILE);
    const rows = await rowsOf();
    written("it's 1xx.csv", `${header}\n${lines[0]}\n`);
    for (const part of ["value=7", "block=[5]"]) mkdirSync(join(folder, part));
    for (const name of ["it's [1]? *.csv", "value=7/transfers.csv", "block=[5]/transfers.csv"]) {
      await load(databaseUrl, written(name, text));
      expect(await rowsOf(), name).toEqual(rows);
    }
  });

  test("It counts from START_BLOCK on, or from its first transfer", async () => {
    const counted = async (START_BLOCK: string) => (await load(databaseUrl, FILE, { START_BLOCK })).firstBlock;
    expect([await counted("3"), await counted("0"), await counted("")]).toEqual([3, 0, 1]);
  });

  const first = lines[0] ?? "";
  const change = (field: number, value: string) =>
    [header, first.split(",").with(field, value).join(), ...lines.slice(1)].join("\n");
  test.each([
    [
      "has no header",
      lines.join("\n"),
      "expected the header block,time,transaction,log_index,from,to,value,authorized",
    ],
    ["has a hash that is short", change(2, "0x12"), 'line 2: transaction is "0x12", expected 0x and 64 hex digits'],
    ["has an invalid address", change(4, "alice"), 'line 2: from is "alice", expected 0x and 40 hex digits'],
    ["has a letter that is not a hex digit", change(4, `0x${"g".repeat(40)}`), 'line 2: from is "0xggg'],
    ["has an address without 0x", change(5, "a".repeat(42)), 'line 2: to is "aaa'],
    ["has no recipient", change(5, ""), 'line 2: to is "", expected 0x and 40 hex digits'],
    ["has a fraction of an atomic unit", change(6, "0.5"), 'line 2: value is "0.5", expected a whole number'],
    ["has a negative value", change(6, "-1"), 'line 2: value is "-1"'],
    ["has a value beyond 64 bits", change(6, "9223372036854775808"), 'line 2: value is "9223372036854775808"'],
    ["has times in milliseconds", change(1, "1795000000000"), 'line 2: time is "1795000000000", expected Unix seconds'],
    ["has a block beyond 2^31", change(0, "2147483648"), "line 2: block is"],
    ["has an invalid flag", change(7, "perhaps"), 'line 2: authorized is "perhaps", expected true or false'],
    [
      "lacks a column in a line",
      [header, first, "1,2,3"].join("\n"),
      "Line: 3.*Expected Number of Columns: 8 Found: 3",
    ],
    [
      "has a transfer twice",
      [header, first, ...lines].join("\n"),
      "wrong.csv: a duplicate transfer, block 1, log_index 0; expected",
    ],
    [
      "has two times for one block",
      change(1, "1787396801"),
      "wrong.csv: the times contradict the order of the blocks at block 1; expected",
    ],
    ["has a time before an earlier block's", `${text}6,1,${first.split(",").slice(2).join()}\n`, "at block 6"],
    ["is empty", `${header}\n`, "wrong.csv: no transfers at or after block 1$"],
    [
      "ends before START_BLOCK",
      `${header}\n0,1${first.slice(first.indexOf(",", 2))}`,
      "no transfers at or after block 1$",
    ],
    [
      "is not UTF-8 text",
      Buffer.concat([Buffer.from(text), Buffer.from([0xff, 0xfe])]),
      "wrong.csv: .*Line: 42.*not utf-8",
    ],
    ["has an open quote", `${text}"1,2`, "wrong.csv: .*Line: 42.*unterminated quote"],
    ["ends its lines in two ways", text.replace("\n", "\r\n"), "wrong.csv: .*not RFC 4180 compliant$"],
  ])("A file that %s is refused, and the previous history is kept", async (_, content, expected) => {
    if ((await readHistory(pool, "history")).firstBlock !== 1) await load(databaseUrl, FILE);
    const [before, rows] = [await schemas(), await rowsOf()];
    const refused = load(databaseUrl, written("wrong.csv", content));
    await expect(refused).rejects.toMatchObject({ name: "LastingError" });
    await expect(refused).rejects.toThrow(new RegExp(expected));
    await expect(refused).rejects.toThrow(/^.*$/);
    expect([await schemas(), await rowsOf()]).toEqual([before, rows]);
  });

  test.each([
    ["transfers.parquet", "expected a .csv or .csv.gz file"],
    ["absent.csv", "no such file"],
    ["broken.csv.gz", "incorrect header check"],
    ["folder.csv", "folder.csv: the folder has no .csv or .csv.gz file"],
  ])("An unreadable file is refused: %s", async (name, expected) => {
    if (name.startsWith("broken")) written(name, text);
    if (name === "folder.csv") mkdirSync(join(folder, name));
    await expect(load(databaseUrl, join(folder, name))).rejects.toThrow(expected);
  });

  test("It may be one of several files, compressed or not, in any order", async () => {
    await load(databaseUrl, FILE);
    const rows = await rowsOf();
    const part = (name: string, some: readonly string[]) => written(name, [header, ...some, ""].join("\n"));
    const rest = gzipSync([header, ...lines.slice(9, 20), ""].join("\n"));
    const files = [
      ...[part("c.csv", lines.slice(20)), written("b.csv.gz", rest), part("a.csv", lines.slice(0, 9))],
      written("none.csv", `${header}\n`),
    ];
    await load(databaseUrl, files);
    expect(await rowsOf()).toEqual(rows);
    await expect(load(databaseUrl, [FILE, ...files])).rejects.toThrow(`${FILE} and ${files[2]}: a duplicate transfer`);
    const strange = `5,1${lines[0]?.slice(lines[0].indexOf(",", 2))}`;
    const late = part("late.csv", [strange]);
    await expect(load(databaseUrl, [...files, late])).rejects.toThrow(`${files[0]} and ${late}: the times contradict`);
    mkdirSync(join(folder, "mixed"));
    for (const [index, file] of files.entries())
      written(join("mixed", `${index}${file.slice(file.indexOf("."))}`), readFileSync(file));
    await load(databaseUrl, join(folder, "mixed"));
    expect(await rowsOf()).toEqual(rows);
  });

  test("It may begin with a byte order mark and have Windows line endings", async () => {
    await load(databaseUrl, FILE);
    const rows = await rowsOf();
    for (const content of [`\uFEFF${text}`, text.replaceAll("\n", "\r\n")]) {
      await load(databaseUrl, written("other.csv", content));
      expect(await rowsOf()).toEqual(rows);
    }
  });

  test.each([
    ["cut off", (whole: Buffer) => whole.subarray(0, -1), "unexpected end of file"],
    ["damaged", (whole: Buffer) => whole.with(-8, (whole.at(-8) ?? 0) ^ 1), "incorrect data check"],
  ])("A compressed file that is %s is refused, although its rows can be read", async (_, spoil, expected) => {
    const file = written("spoilt.csv.gz", Buffer.from(spoil(gzipSync(text))));
    await expect(load(databaseUrl, file)).rejects.toThrow(`${file}: damaged or incomplete (${expected}); expected`);
  });
});
