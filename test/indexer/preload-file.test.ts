import { execFileSync } from "node:child_process";
import { createWriteStream, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { generateChain } from "../../bench/index/generated-chain.ts";
import { serveChain } from "../../bench/index/rpc-server.ts";
import { connectChain } from "../../indexer/chain.ts";
import { chooseDeployment } from "../../indexer/deployment.ts";
import { expectFit, isFinalOn, readHistory } from "../../indexer/history/history.ts";
import { HISTORY_TABLES } from "../../indexer/history/tables.ts";
import { folderForFile } from "../support/folder.ts";
import { forFile } from "../support/for-file.ts";
import { launchIndexer } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";
import { environment, load, settingsOf, startPreload } from "./preloaded.ts";

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
  const rows = Object.keys(HISTORY_TABLES).map(
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

  test("counts from START_BLOCK on, or from its first transfer", async () => {
    const counted = async (START_BLOCK: string) => (await load(databaseUrl, FILE, { START_BLOCK })).firstBlock;
    expect([await counted("3"), await counted("0"), await counted("")]).toEqual([3, 0, 1]);
  });

  const first = lines[0] ?? "";
  const change = (field: number, value: string) =>
    [header, first.split(",").with(field, value).join(), ...lines.slice(1)].join("\n");
  test.each([
    ["has no header", lines.join("\n"), "column name mismatch"],
    ["has a hash that is short", change(2, "0x12"), "transaction is 0x and 64 hex digits.*line 2"],
    ["has an invalid address", change(4, "alice"), "from is 0x and 40 hex digits.*line 2"],
    ["has no recipient", change(5, ""), 'null value in column "to".*line 2'],
    ["has a fraction of an atomic unit", change(6, "0.5"), 'bigint: "0.5".*line 2'],
    ["has a negative value", change(6, "-1"), "value is in atomic units"],
    ["has times in milliseconds", change(1, "1795000000000"), "time is in Unix seconds"],
    ["has a transfer twice", [header, first, ...lines].join("\n"), "a duplicate transfer.*block, log_index.*1, 0"],
    ["has two times for one block", change(1, "1787396801"), "contradict its block order at block 1"],
    ["has a time before that of an earlier block", `${text}6,1,${first.split(",").slice(2).join()}\n`, "at block 6"],
    ["is empty", `${header}\n`, "no transfers at or after START_BLOCK"],
  ])("that %s is refused, and the history before it stays", async (_, content, expected) => {
    await load(databaseUrl, FILE);
    const [before, rows] = [await schemas(), await rowsOf()];
    const refused = load(databaseUrl, written("wrong.csv", content));
    await expect(refused).rejects.toMatchObject({ name: "UnfitHistoryError" });
    await expect(refused).rejects.toThrow(new RegExp(expected));
    expect([await schemas(), await rowsOf()]).toEqual([before, rows]);
  });

  test.each([
    ["transfers.xlsx", "expected a .csv, .csv.gz, or .parquet file"],
    ["absent.csv", "no such file"],
    ["absent.parquet", "no such file"],
    ["broken.csv.gz", "incorrect header check"],
    ["broken.parquet", "parquet"],
  ])("that cannot be read is refused: %s", async (name, expected) => {
    if (name.startsWith("broken")) written(name, text);
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

  test("whose loading is killed halfway leaves nothing, and the next run loads all of it", async () => {
    const { id } = await load(databaseUrl, FILE);
    await pool.query("drop schema history cascade");
    const before = await schemas();
    const rpc = await serveChain(CHAIN);
    const env = environment({ DATABASE_URL: databaseUrl, BASE_RPC_URL: rpc.url });
    const pipe = join(folder, "slow.csv");
    execFileSync("mkfifo", [pipe]);
    const killed = startPreload(pipe, env);
    const writer = createWriteStream(pipe).on("error", () => {});
    writer.write(`${[header, ...lines.slice(0, 20)].join("\n")}\n`);
    const copying = async () =>
      (await pool.query("select from pg_stat_progress_copy where tuples_processed > 0")).rowCount;
    // COPY starts taking lines only once it has enough of them, so feed it until then.
    for (let block = 1_000; (await copying()) === 0; block += 1)
      writer.write(`${lines.map((line) => line.replace(/^\d+/, String(block))).join("\n")}\n`);
    process.kill(killed.pid, "SIGKILL");
    expect((await killed.ended).code).toBeNull();
    writer.destroy();
    await expect.poll(copying, { timeout: 10_000 }).toBe(0);
    expect(await schemas()).toEqual(before);
    const again = await startPreload(FILE, env).ended;
    expect(again).toMatchObject({ code: 0, said: expect.stringContaining("history: 36 transfers, blocks 1 to 5") });
    expect((await readHistory(pool, "history")).id).toBe(id);
    rpc.close();
  });
});

describe("a history", () => {
  test.each([
    ["another scope", { INDEX_SCOPE: "authorised" }, "its scope is full, but INDEX_SCOPE is authorised"],
    ["another start block", { START_BLOCK: "2" }, "it starts at block 1, but START_BLOCK is 2"],
    ["other addresses of its own", { OWN_ADDRESSES: STRANGER }, "leaves out the service's addresses 0x5e"],
    ["other escrows", { ESCROW_ADDRESSES: STRANGER }, "OWN_ADDRESSES, and ESCROW_ADDRESSES are 0x000"],
  ])("is not taken over by an index of %s", async (_, changed, expected) => {
    const history = await load(databaseUrl, FILE);
    expect(() => expectFit(history, settingsOf())).not.toThrow();
    expect(() => expectFit(history, settingsOf(changed))).toThrow(expected);
  });

  test("of other rules or another chain's id is not taken over, and START_BLOCK need not be given", async () => {
    const history = await load(databaseUrl, FILE);
    expect(() => expectFit(history, settingsOf({ START_BLOCK: "" }))).not.toThrow();
    expect(() => expectFit({ ...history, rules: "{}" }, settingsOf())).toThrow("a different release created it");
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
    const chosen = [null, history, other, history].map((one) =>
      chooseDeployment(pool, settings, { head: 9_000_000, history: one }),
    );
    const [none, first, second, again] = await Promise.all(chosen);
    expect([none?.startBlock, first?.startBlock]).toEqual([9_000_000 - 3_888_000, 2]);
    expect(new Set([none, first, second].map((one) => one?.schema)).size).toBe(3);
    expect(again).toEqual(first);
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
