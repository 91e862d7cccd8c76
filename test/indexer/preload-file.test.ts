import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { generateChain } from "../../bench/index/generated-chain.ts";
import { serveChain } from "../../bench/index/rpc-server.ts";
import { connectChain } from "../../indexer/chain.ts";
import { chooseDeployment } from "../../indexer/choose-deployment.ts";
import type { Deployment } from "../../indexer/deployment.ts";
import { NoRoomError, openDuck } from "../../indexer/history/duck.ts";
import { expectFit, isFinalOn, readHistory } from "../../indexer/history/history.ts";
import { historyTables } from "../../indexer/history/tables.ts";
import { readFiles } from "../../indexer/history/transfers.ts";
import { foundingAddresses, readOwnAddresses } from "../../indexer/own-addresses.ts";
import { ROWS_VERSION } from "../../indexer/rows-version.ts";
import { folderForFile } from "../support/folder.ts";
import { forFile } from "../support/for-file.ts";
import { launchIndexer } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";
import { environment, load, type Preload, settingsOf, startPreload } from "./preloaded.ts";

const FILE = join(import.meta.dirname, "preload-transfers.csv");
/** The chain that the file is of. */
const CHAIN = generateChain({ transfers: 40, perBlock: 8, endsAt: 1_795_000_000 });
const STRANGER = "0x000000000000000000000000000000000000dEaD";
const text = readFileSync(FILE, "utf8");
const [header = "", ...lines] = text.trimEnd().split("\n");

const folder = await folderForFile("trust-preload-file-");
const databaseUrl = (await freshDatabase()).ownerUrl;
const pool = await forFile(new pg.Pool({ connectionString: databaseUrl, max: 2 }));

function written(name: string, content: string | Buffer): string {
  const file = join(folder, name);
  writeFileSync(file, content);
  return file;
}

async function rowsOf(): Promise<Record<string, unknown>> {
  const rows = historyTables("full").map(
    async (table) => [table, (await pool.query(`select * from history.${table} t order by t`)).rows] as const,
  );
  return Object.fromEntries(await Promise.all(rows));
}

/** A schema, so that nothing half made is left, under whatever name. */
const schemas = async () => (await pool.query("select nspname from pg_namespace order by 1")).rows;

describe("a file of transfers", () => {
  test("means the same as CSV, compressed, as Parquet of text and as Parquet of bytes", async () => {
    const { id, ...history } = await load(databaseUrl, FILE);
    const rows = await rowsOf();
    expect(history).toMatchObject({ firstBlock: 1, lastBlock: 5, transfers: 36, scope: "full" });
    expect(rows.pair).toHaveLength(36);
    const others = [
      written("transfers.csv.gz", gzipSync(text)),
      ...["text", "bytes"].map((kind) => join(import.meta.dirname, `preload-transfers-${kind}.parquet`)),
    ];
    for (const file of others) {
      expect((await load(databaseUrl, file)).id, file).toBe(id);
      expect(await rowsOf(), file).toEqual(rows);
    }
  });

  test("may have its addresses and hashes in upper case, and its lines in any order", async () => {
    await load(databaseUrl, FILE);
    const rows = await rowsOf();
    const capitals = lines.map((line) => line.replace(/0x([0-9a-f]+)/g, (_, digits) => `0x${digits.toUpperCase()}`));
    await load(databaseUrl, written("capitals.csv", [header, ...capitals.toReversed(), ""].join("\n")));
    expect(await rowsOf()).toEqual(rows);
  });

  test("tells wallets apart whose hashes of 64 bits are equal, as anybody can make them", async () => {
    const pair = ["0100000000000000020000000000000007070707", "03000000000000002405f474930652ae07070707"];
    const duck = await openDuck(join(folder, "duck"));
    const hashes = await duck.rows<{ same: boolean }>(
      `select hash(unhex('${pair[0]}')) = hash(unhex('${pair[1]}')) as same`,
    );
    duck.close();
    expect(hashes).toEqual([{ same: true }]);
    const paid = (line: string, to: string, value: number) =>
      line.split(",").with(5, `0x${to}`).with(6, String(value)).join();
    const [one = "", two = ""] = [lines[1], lines[2]];
    const changed = [paid(one, pair[0] ?? "", 11), paid(two, pair[1] ?? "", 22)];
    await load(databaseUrl, written("collision.csv", [header, lines[0], ...changed, ...lines.slice(3), ""].join("\n")));
    const { rows } = await pool.query(
      `select encode(wallet, 'hex') as wallet, funder_atomic from history.wallet where encode(wallet, 'hex') = any($1) order by wallet`,
      [pair],
    );
    expect(rows).toEqual([
      { wallet: pair[0], funder_atomic: "11" },
      { wallet: pair[1], funder_atomic: "22" },
    ]);
    expect((await pool.query("select count(*)::int as n from history.pair")).rows).toEqual([{ n: 36 }]);
  });

  test("ends at its last transfer, however its rows fall into DuckDB's groups", async () => {
    const word = (n: number, digits: number) => `0x${n.toString(16).padStart(digits, "0")}`;
    const line = (n: number) =>
      [n, 1_700_000_000 + n, word(n, 64), 0, word(1 + (n % 97), 40), word(200 + (n % 101), 40), n, true].join();
    const many = Array.from({ length: 60_000 }, (_, index) => line(index + 1));
    const { firstBlock, lastBlock, marks } = await load(databaseUrl, written("many.csv", [header, ...many].join("\n")));
    expect([firstBlock, lastBlock]).toEqual([1, 60_000]);
    expect(marks.map(({ transaction }) => transaction)).toEqual([word(1, 64), word(60_000, 64)]);
  });

  test("has the name that it has, whatever it would be as a pattern or in a partitioned archive", async () => {
    const { id } = await load(databaseUrl, FILE);
    const [name, other] = ["it's [1]? *.csv", "it's 1xx.csv"];
    for (const [file, content] of [
      [name, text],
      [other, `${header}\n${lines[0]}\n`],
    ] as const)
      written(file, content);
    expect((await load(databaseUrl, join(folder, name))).id).toBe(id);
    for (const part of ["value=7", "block=[5]"]) {
      mkdirSync(join(folder, part));
      for (const kind of ["text", "bytes"]) {
        const parquet = readFileSync(join(import.meta.dirname, `preload-transfers-${kind}.parquet`));
        expect((await load(databaseUrl, written(join(part, `${kind}.parquet`), parquet))).id).toBe(id);
      }
      expect((await load(databaseUrl, written(join(part, "transfers.csv"), text))).id).toBe(id);
    }
  });

  test("counts from START_BLOCK on, or from its first transfer", async () => {
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
      "expected the header block,time,transaction,log_index,from,to,value,authorised",
    ],
    ["has a hash that is short", change(2, "0x12"), 'line 2: transaction is "0x12", expected 0x and 64 hex digits'],
    ["has an invalid address", change(4, "alice"), 'line 2: from is "alice", expected 0x and 40 hex digits'],
    ["has a letter that is no hex digit", change(4, `0x${"g".repeat(40)}`), 'line 2: from is "0xggg'],
    ["has an address without 0x", change(5, "a".repeat(42)), 'line 2: to is "aaa'],
    ["has no recipient", change(5, ""), 'line 2: to is "", expected 0x and 40 hex digits'],
    ["has a fraction of an atomic unit", change(6, "0.5"), 'line 2: value is "0.5", expected a whole number'],
    ["has a negative value", change(6, "-1"), 'line 2: value is "-1"'],
    ["has a value beyond 64 bits", change(6, "9223372036854775808"), 'line 2: value is "9223372036854775808"'],
    ["has times in milliseconds", change(1, "1795000000000"), 'line 2: time is "1795000000000", expected Unix seconds'],
    ["has a block beyond 2^31", change(0, "2147483648"), "line 2: block is"],
    ["says neither yes nor no", change(7, "perhaps"), 'line 2: authorised is "perhaps", expected true or false'],
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
    ["has a time before that of an earlier block", `${text}6,1,${first.split(",").slice(2).join()}\n`, "at block 6"],
    ["is empty", `${header}\n`, "wrong.csv: no transfers$"],
    [
      "ends before START_BLOCK",
      `${header}\n0,1${first.slice(first.indexOf(",", 2))}`,
      "at or after START_BLOCK 1; the last is in block 0$",
    ],
    [
      "is not text in UTF-8",
      Buffer.concat([Buffer.from(text), Buffer.from([0xff, 0xfe])]),
      "wrong.csv: .*Line: 42.*not utf-8",
    ],
    ["has an open quote", `${text}"1,2`, "wrong.csv: .*Line: 42.*unterminated quote"],
    ["ends its lines in two ways", text.replace("\n", "\r\n"), "wrong.csv: .*not RFC 4180 compliant$"],
  ])("that %s is refused, and the history before it stays", async (_, content, expected) => {
    if ((await readHistory(pool, "history")).firstBlock !== 1) await load(databaseUrl, FILE);
    const [before, rows] = [await schemas(), await rowsOf()];
    const refused = load(databaseUrl, written("wrong.csv", content));
    await expect(refused).rejects.toMatchObject({ name: "UnfitHistoryError" });
    await expect(refused).rejects.toThrow(new RegExp(expected));
    await expect(refused).rejects.toThrow(/^.*$/);
    expect([await schemas(), await rowsOf()]).toEqual([before, rows]);
  });

  test.each([
    ["transfers.xlsx", "expected a .csv, .csv.gz, or .parquet file"],
    ["absent.csv", "no such file"],
    ["absent.parquet", "no such file"],
    ["broken.csv.gz", "incorrect header check"],
    ["broken.parquet", "No magic bytes"],
    ["folder.csv", "folder.csv: the folder has no .csv, .csv.gz, or .parquet file"],
  ])("that cannot be read is refused: %s", async (name, expected) => {
    if (name.startsWith("broken")) written(name, text);
    if (name === "folder.csv") mkdirSync(join(folder, name));
    await expect(load(databaseUrl, join(folder, name))).rejects.toThrow(expected);
  });

  test("never replaces a schema that is not a history", async () => {
    await pool.query("create schema busy; create table busy.work (n int)");
    await expect(load(databaseUrl, FILE, { INDEX_HISTORY: "busy" })).rejects.toThrow(
      '"busy" exists but is not a history',
    );
    expect((await pool.query("select from busy.work")).rowCount).toBe(0);
    expect(() => settingsOf({ INDEX_HISTORY: "Busy" })).toThrow("INDEX_HISTORY is wrong");
  });

  test("may be one of several, of whatever format, in any order", async () => {
    const { id } = await load(databaseUrl, FILE);
    const rows = await rowsOf();
    const part = (name: string, some: readonly string[]) => written(name, [header, ...some, ""].join("\n"));
    const rest = gzipSync([header, ...lines.slice(9, 20), ""].join("\n"));
    const files = [
      ...[part("c.csv", lines.slice(20)), written("b.csv.gz", rest), part("a.csv", lines.slice(0, 9))],
      written("none.csv", `${header}\n`),
    ];
    expect((await load(databaseUrl, files)).id).toBe(id);
    expect(await rowsOf()).toEqual(rows);
    const bytes = join(import.meta.dirname, "preload-transfers-bytes.parquet");
    await expect(load(databaseUrl, [FILE, ...files])).rejects.toThrow(`${FILE} and ${files[2]}: a duplicate transfer`);
    await expect(load(databaseUrl, [FILE, bytes])).rejects.toThrow(`${FILE} and ${bytes}: a duplicate transfer`);
    const strange = `5,1${lines[0]?.slice(lines[0].indexOf(",", 2))}`;
    const late = part("late.csv", [strange]);
    await expect(load(databaseUrl, [...files, late])).rejects.toThrow(`${files[0]} and ${late}: the times contradict`);
    mkdirSync(join(folder, "mixed"));
    for (const [index, file] of files.entries())
      written(join("mixed", `${index}${file.slice(file.indexOf("."))}`), readFileSync(file));
    expect((await load(databaseUrl, join(folder, "mixed"))).id).toBe(id);
  });

  test("that leaves a day out, or begins a day late, is asked about", async () => {
    const later = lines.slice(8).map((line) => line.replace(/^\d+/, (block) => String(Number(block) + 43_201)));
    const sooner = written("sooner.csv", [header, ...lines.slice(0, 8)].join("\n"));
    const both = [sooner, written("later.csv", [header, ...later].join("\n"))];
    const duck = await openDuck(join(folder, "gaps"));
    const gapsOf = async (files: readonly string[]) => {
      const { gaps } = await readFiles(duck, files, { scope: "full", startBlock: 1 });
      await duck.run("drop table raw");
      return gaps;
    };
    expect([await gapsOf([FILE]), await gapsOf(both)]).toEqual([[], [[2, 43_202]]]);
    expect(await gapsOf(both.slice(1))).toEqual([[1, 43_202]]);
    duck.close();
  });

  test("may begin with a byte order mark, and have lines that end as on Windows", async () => {
    const { id } = await load(databaseUrl, FILE);
    for (const content of [`\uFEFF${text}`, text.replaceAll("\n", "\r\n")])
      expect((await load(databaseUrl, written("other.csv", content))).id).toBe(id);
  });

  test.each([
    ["cut off", (whole: Buffer) => whole.subarray(0, -1), "unexpected end of file"],
    ["damaged", (whole: Buffer) => whole.with(-8, (whole.at(-8) ?? 0) ^ 1), "incorrect data check"],
  ])("that is %s while compressed is refused, although its rows can be read", async (_, spoil, expected) => {
    const file = written("spoilt.csv.gz", Buffer.from(spoil(gzipSync(text))));
    await expect(load(databaseUrl, file)).rejects.toThrow(`${file} is damaged or not complete (${expected}): expected`);
  });

  test("that does not fit into the folder for temporary files says which folder that is", async () => {
    const duck = await openDuck(join(folder, "small"));
    await duck.run("set memory_limit = '40MB'; set threads = 1; set max_temp_directory_size = '1MB'");
    const made = duck.run("create table big as select range, hash(range), hash(-range) from range(4000000)");
    await expect(made).rejects.toThrow(NoRoomError);
    await expect(made).rejects.toThrow(
      /^There is too little room in .*small: .*\. Set TMPDIR to a folder on a larger disk$/,
    );
    duck.close();
  });

  test("whose loading is killed at the last moment leaves the history before it, and the next run replaces it", async () => {
    const { id } = await load(databaseUrl, FILE, { START_BLOCK: "2" });
    const before = [await schemas(), await rowsOf()];
    const rpc = await serveChain(CHAIN);
    const env = environment({ DATABASE_URL: databaseUrl, BASE_RPC_URL: rpc.url });
    const reader = await pool.connect();
    await reader.query("begin; select from history.pair");
    const blocked =
      "select pid from pg_stat_activity where wait_event_type = 'Lock' and query like 'drop schema %' and datname = current_database()";
    const waiting = async () => (await pool.query(blocked)).rowCount;
    const terminate = () => pool.query(`select pg_terminate_backend(pid) from (${blocked}) blocked`);
    for (const [end, why] of [
      [({ pid }: Preload) => process.kill(pid, "SIGTERM"), "Ended by SIGTERM. Nothing is half made"],
      [terminate, "PostgreSQL closed the connection"],
    ] as const) {
      const ended = startPreload(FILE, { ...env, TMPDIR: folder });
      await expect.poll(waiting, { timeout: 60_000 }).toBe(1);
      await end(ended);
      expect(await ended.ended).toMatchObject({ code: 1, said: expect.stringContaining(why) });
      expect(readdirSync(folder).filter((name) => name.startsWith("index-preload-"))).toEqual([]);
      await terminate();
      await expect.poll(waiting, { timeout: 60_000 }).toBe(0);
    }
    const killed = startPreload(FILE, env);
    await expect.poll(waiting, { timeout: 60_000 }).toBe(1);
    process.kill(killed.pid, "SIGKILL");
    expect((await killed.ended).code).toBeNull();
    const next = startPreload(FILE, env);
    await next.saying("waiting for its end");
    expect(await schemas()).toEqual(before[0]);
    await reader.query("rollback");
    reader.release();
    const again = await next.ended;
    expect(again).toMatchObject({ code: 0, said: expect.stringContaining("history: 36 transfers, blocks 1 to 5") });
    expect((await readHistory(pool, "history")).id).not.toBe(id);
    expect(await schemas()).toEqual(before[0]);
    rpc.close();
  });
});

describe("a history", () => {
  test.each([
    ["another scope", { INDEX_SCOPE: "authorised" }, "its scope is full, but INDEX_SCOPE is authorised"],
    ["another start block", { START_BLOCK: "2" }, "it starts at block 1, but START_BLOCK is 2"],
  ])("is not taken over by an index of %s", async (_, changed, expected) => {
    const history = await load(databaseUrl, FILE);
    expect(() => expectFit(history, settingsOf())).not.toThrow();
    expect(() => expectFit(history, settingsOf(changed))).toThrow(expected);
  });

  test("of other rules or another chain's id is not taken over, and START_BLOCK need not be given", async () => {
    const history = await load(databaseUrl, FILE);
    expect(() => expectFit(history, settingsOf({ START_BLOCK: "" }))).not.toThrow();
    expect(() => expectFit({ ...history, rules: "{}" }, settingsOf())).toThrow(
      `its rows are of version {}, but this release's are of version ${ROWS_VERSION}`,
    );
    expect(() => expectFit({ ...history, chainId: 1 }, settingsOf())).toThrow("it is for chain 1");
  });

  test("of another chain ends the loader and the indexer with what differs", async () => {
    await load(databaseUrl, FILE);
    const other = await serveChain(generateChain({ transfers: 40, perBlock: 8, endsAt: 1_795_000_002 }));
    const env = environment({ DATABASE_URL: databaseUrl, BASE_RPC_URL: other.url });
    const [preload, indexer] = [startPreload(FILE, env), launchIndexer(env)];
    expect(await preload.ended).toMatchObject({
      code: 1,
      said: expect.stringContaining("is not from the node's chain: block 1"),
    });
    expect(await indexer.ended).toBe(1);
    const { code } = await startPreload(FILE, { ...env, INDEX_HISTORY: "" }).ended;
    expect(code).toBe(1);
    other.close();
  });

  test("is part of the name of its index, which begins where the history does", async () => {
    const history = await load(databaseUrl, FILE, { START_BLOCK: "2" });
    const settings = settingsOf({ START_BLOCK: "" });
    const other = { ...history, id: "another" };
    const chosen: Deployment[] = [];
    for (const one of [null, history, other, history])
      chosen.push(await chooseDeployment(pool, settings, { head: 9_000_000, history: one, countHolds: async () => 0 }));
    const [none, first, second, again] = chosen;
    expect([none?.startBlock, first?.startBlock]).toEqual([9_000_000 - 3_888_000, 2]);
    expect(new Set([none, first, second].map((one) => one?.schema)).size).toBe(3);
    expect(again).toEqual(first);
    await pool.query("alter table history.wallet_day rename to taken");
    const late = chooseDeployment(pool, settings, { head: 9_000_000, history, countHolds: async () => 0 });
    await expect(late).rejects.toThrow('An index has taken the rows of the history "history"');
  });

  test("leaves out what the index does, or what has no rows in it", async () => {
    const history = await load(databaseUrl, FILE);
    const payer = lines[0]?.split(",")[4]?.toLowerCase() ?? "";
    const founding = (changed: Record<string, string>) => foundingAddresses(pool, settingsOf(changed), history);
    const [service] = history.ownAddresses;
    const [stranger, always] = [STRANGER.toLowerCase(), { address: service, fromBlock: 0, escrowFrom: null }];
    expect(await founding({})).toEqual([always]);
    expect(await founding({ OWN_ADDRESSES: STRANGER })).toEqual([
      { address: stranger, fromBlock: 0, escrowFrom: null },
      always,
    ]);
    await expect(founding({ OWN_ADDRESSES: payer })).rejects.toThrow(`${payer} has 1 rows in wallet_day`);
    await expect(founding({ PAY_TO_ADDRESS: STRANGER })).rejects.toThrow(`it leaves out ${service}`);
    const late = await founding({ OWN_ADDRESSES: payer, OWN_ADDRESSES_CHANGE: "from_now_on" });
    expect(late).toContainEqual({ address: payer, fromBlock: history.lastBlock + 1, escrowFrom: null });
  });

  test("counts, too, when an address is added before an index has taken it over", async () => {
    const history = await load(databaseUrl, FILE);
    const payer = lines[0]?.split(",")[4]?.toLowerCase() ?? "";
    const choose = (changed: Record<string, string> = {}) =>
      chooseDeployment(pool, settingsOf(changed), { head: 9_000_000, history, countHolds: async () => 0 });
    const { schema } = await choose();
    await expect(choose({ OWN_ADDRESSES: payer })).rejects.toThrow(`${payer} has 1 rows in wallet_day`);
    expect((await choose({ OWN_ADDRESSES: payer, OWN_ADDRESSES_CHANGE: "from_now_on" })).schema).toBe(schema);
    const since = { address: payer, fromBlock: history.lastBlock + 1, escrowFrom: null };
    expect(await readOwnAddresses(pool, schema)).toContainEqual(since);
  });

  test("made again while an index is about to take it over is not taken for the one before", async () => {
    const rpc = await serveChain(CHAIN);
    const { ownerUrl } = await freshDatabase();
    await load(ownerUrl, FILE);
    const launched = launchIndexer(environment({ DATABASE_URL: ownerUrl, BASE_RPC_URL: rpc.url }));
    await launched.saying("ponder started");
    const db = new pg.Client({ connectionString: ownerUrl });
    await db.connect();
    await db.query("update history.history set id = 'made again'");
    await launched.saying("index ready");
    await launched.stop();
    await db.end();
    rpc.close();
    const [first, second] = launched.said("ponder started").map(({ schema }) => schema);
    expect(launched.said("index ready")).toEqual([expect.objectContaining({ schema: second, dropped: [first] })]);
  });

  test("that does not exist ends the indexer", async () => {
    await expect(readHistory(pool, "nowhere")).rejects.toThrow('this database has no history "nowhere"');
  });

  test("whose last block is not final yet is waited for", async () => {
    const head = CHAIN.last + 29;
    const rpc = await serveChain({ ...CHAIN, head });
    const history = await load(databaseUrl, FILE);
    const chain = connectChain(rpc.url);
    const now = Math.floor(Date.now() / 1000);
    expect(await isFinalOn(chain, { number: head, timestamp: now }, history)).toBe(false);
    expect(await isFinalOn(chain, { number: head + 1, timestamp: now }, history)).toBe(true);
    expect(await isFinalOn(chain, { number: CHAIN.last - 1, timestamp: now - 600 }, history)).toBe(false);
    const shorter = isFinalOn(chain, { number: CHAIN.last - 1, timestamp: now }, history);
    await expect(shorter).rejects.toThrow("goes to block 5, but the node's head is 4");
    const env = environment({ DATABASE_URL: databaseUrl, BASE_RPC_URL: rpc.url });
    const preload = await startPreload(FILE, env).ended;
    expect(preload).toMatchObject({ code: 1, said: expect.stringContaining("is not final on the node yet") });
    rpc.close();
  });
});
