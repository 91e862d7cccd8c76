import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { fetchedFiles, openFolder, writeFetched } from "../../indexer/fetch/files.ts";
import { openDuck } from "../../indexer/history/duck.ts";
import { readFiles } from "../../indexer/history/transfers.ts";
import { LastingError } from "../../indexer/ledger.ts";
import { startFaultyNode } from "../support/chain/nodes.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { generateChain, writeCsv } from "../support/indexer/generated-chain.ts";
import { serveChain } from "../support/indexer/rpc-server.ts";
import { freshDatabase } from "../support/service/database.ts";
import { fetchInto, filesIn, readRows, startFetch } from "./fetched.ts";
import { FILE, historyRows, load } from "./preloaded.ts";

// A generated chain of a few days with a block every four hours. Its transfers end where the fetch does, ten blocks
// behind the head.

const CHAIN = generateChain({ transfers: 960, perBlock: 20, endsAt: 1_795_000_000, secondsPerBlock: 14_400 });
const DAY_SECONDS = 86_400;
const rpc = await serveChain({ ...CHAIN, head: CHAIN.last + 30 });
await forFile({ end: async () => rpc.close() });
const node = await forFile(startFaultyNode({ rpcUrl: rpc.url }));
const home = await folderForFile("trust-fetch-days-");
const { ownerUrl } = await freshDatabase();
const db = await forFile(new pg.Pool({ connectionString: ownerUrl, max: 1 }));
const expected = Array.from({ length: CHAIN.last }, (_, n) => n + 1).flatMap((block) =>
  CHAIN.transfersOf(block)
    .filter(({ authorized }) => authorized)
    .map(({ logIndex, value, ...transfer }) => ({
      ...{ block, time: CHAIN.timeOf(block), log_index: logIndex, value: String(value) },
      ...transfer,
    })),
);
const fetched = (folder: string) => fetchInto({ folder, urls: [rpc.url], startBlock: 1 });
const loaded = (files: string | readonly string[], changed = {}) =>
  load(ownerUrl, files, { INDEX_SCOPE: "selective", ...changed });

test("A file has the authorized transfers of one UTC day, and the files are contiguous", async () => {
  const folder = join(home, "days");
  const { files } = await fetched(folder);
  expect(await readRows(folder)).toEqual(expected);
  expect(files.length).toBeGreaterThan(7);
  const dayOf = (block: number) => Math.floor(CHAIN.timeOf(block) / DAY_SECONDS);
  for (const [index, { firstBlock, lastBlock }] of files.entries()) {
    expect(dayOf(firstBlock)).toBe(dayOf(lastBlock));
    expect(firstBlock).toBe((files[index - 1]?.lastBlock ?? 0) + 1);
  }
  expect(files.at(-1)?.lastBlock).toBe(CHAIN.last);
});

test("A history from the files equals one from a CSV, for an index of payments", async () => {
  const [csv, folder] = [join(home, "transfers.csv"), join(home, "days")];
  await writeCsv(CHAIN, csv);
  const rows = () => historyRows(db, "selective");
  await loaded(csv);
  const whole = await rows();
  await loaded(folder);
  expect(await rows()).toEqual(whole);
  await expect(load(ownerUrl, folder)).rejects.toThrow("has authorized payments only, but INDEX_SCOPE is full");
  await expect(loaded(folder, { START_BLOCK: "0" })).rejects.toThrow(
    "START_BLOCK is 0, but the files begin at block 1",
  );
});

test("A missing day is fetched again, and no history is made without it", async () => {
  const folder = join(home, "days");
  const third = filesIn(folder)[2] ?? "";
  rmSync(join(folder, third));
  await expect(loaded(folder)).rejects.toThrow(/No file has the blocks \d+ to \d+$/);
  const { requests } = await fetched(folder);
  expect(filesIn(folder)[2]).toBe(third);
  expect(requests).toBeLessThan(20);
  expect(await readRows(folder)).toEqual(expected);
});

test("A foreign file and an overlapping file are named", async () => {
  const folder = join(home, "days");
  await expect(loaded([folder, join(folder, filesIn(folder)[0] ?? "")])).rejects.toThrow(/overlap: remove one of them/);
  await expect(loaded([folder, FILE])).rejects.toThrow("Do not mix them with other files");
  const other = join(folder, "other.csv");
  writeFileSync(other, "");
  await expect(fetched(folder)).rejects.toThrow(`${other} is not from npm run index:fetch`);
  rmSync(other);
});

test("A node that is behind limits the fetch to its blocks", async () => {
  const folder = join(home, "behind");
  const run = () => fetchInto({ folder, urls: [rpc.url, node.url], startBlock: 1 });
  node.become(async (call, pass) =>
    pass(call.params?.[0] === "finalized" ? { ...call, params: ["0x9", false] } : call),
  );
  expect((await run()).files.at(-1)?.lastBlock).toBe(9);
  node.become(null);
  expect((await run()).files.at(-1)?.lastBlock).toBe(CHAIN.last);
});

test("A flipped bit in a file, or a truncated file, never changes a row unnoticed", async () => {
  const FLIPS = 100;
  const folder = join(home, "days");
  const name = filesIn(folder)[1] ?? "";
  const whole = readFileSync(join(folder, name));
  const duck = await openDuck(join(home, "flipped"));
  const file = join(home, name);
  const readAs = async (bytes: Buffer) => {
    writeFileSync(file, bytes);
    await duck.run("drop table if exists raw");
    await readFiles(duck, [file], { startBlock: null, scope: "selective" });
    return JSON.stringify(await duck.rows("select columns(*)::varchar from raw order by block, log_index"));
  };
  const rows = await readAs(whole);
  let refused = 0;
  for (let n = 0; n < FLIPS; n += 1) {
    const bit = (Math.imul(n + 1, 0x9e3779b1) >>> 0) % (whole.length * 8);
    const flipped = Buffer.from(whole);
    flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    // Some bits of gzip's header are ignored.
    const read = await readAs(flipped).catch((error: unknown) => error);
    if (read === rows) continue;
    expect(read, `bit ${bit}`).toBeInstanceOf(LastingError);
    expect((read as Error).message).toContain(`${file}: damaged or incomplete`);
    refused += 1;
  }
  expect(refused).toBeGreaterThan(0.9 * FLIPS);
  await expect(readAs(whole.subarray(0, -1))).rejects.toThrow(`${file}: damaged or incomplete`);
  duck.close();
});

test("Finished files can be read during a run, a later run on the folder continues, and the earlier one ends", async () => {
  const folder = join(home, "shared");
  const released = Promise.withResolvers<void>();
  let reached = Promise.withResolvers<void>();
  node.become(async (call, pass) => {
    const first = Number((call.params?.[0] as { readonly fromBlock?: string })?.fromBlock);
    if (call.method === "eth_getLogs" && first >= 20) {
      reached.resolve();
      await released.promise;
    }
    return pass(call);
  });
  const env = { BASE_RPC_URL: node.url, FETCH_PER_SECOND: "1000", START_BLOCK: "1" };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    const stopped = startFetch([folder], env);
    await reached.promise;
    process.kill(stopped.pid, signal);
    expect((await stopped.ended).code).toBeNull();
    reached = Promise.withResolvers();
  }
  const running = startFetch([folder], env);
  await reached.promise;
  const written = filesIn(folder).filter((name) => !name.startsWith("."));
  const { lastBlock } = await loaded(folder);
  expect(Number(written.at(-1)?.split("-")[4])).toBeGreaterThanOrEqual(lastBlock);
  await fetched(folder);
  released.resolve();
  expect(await running.ended).toMatchObject({
    code: 1,
    output: expect.stringContaining("Run the command again to continue"),
  });
  expect(filesIn(folder)).toEqual(filesIn(join(home, "days")));
  expect(await readRows(folder)).toEqual(expected);
});

test("A failing disk leaves no file and is reported, and the next run continues", async () => {
  const folder = join(home, "disk");
  openFolder(folder);
  const hashes = { parentHash: "12".repeat(8), lastHash: "34".repeat(8) };
  const coverage = { day: "2026-11-01", firstBlock: 1, lastBlock: 2, ...hashes } as const;
  const hash = `0x${"12".repeat(32)}`;
  const line = `1,1795000000,${hash},0,0x${"a1".repeat(20)},0x${"a2".repeat(20)},7,true\n`;
  const lines = async function* (before: () => void) {
    before();
    yield line;
  };
  const gone = writeFetched(
    folder,
    coverage,
    lines(() => rmSync(folder, { recursive: true })),
  );
  await expect(gone).rejects.toThrow(
    /^.*2026-11-01.* could not be written: .*no such file.* Run the command again to continue$/,
  );
  openFolder(folder);
  expect(fetchedFiles(folder)).toEqual([]);
  await writeFetched(
    folder,
    coverage,
    lines(() => undefined),
  );
  expect(fetchedFiles(folder)).toMatchObject([coverage]);
  expect(filesIn(folder)).toEqual([expect.stringMatching(/^2026-11-01-1-2-.*\.csv\.gz$/)]);
});

test("Invalid settings and arguments are named", async () => {
  const other = generateChain({ transfers: 40, perBlock: 8, endsAt: 1_795_000_000 });
  expect(other.last).toBe(5);
  const run = async (args: readonly string[], env: Record<string, string>) => {
    const { code, output } = await startFetch(args, env).ended;
    expect(code).toBe(1);
    return output;
  };
  writeFileSync(join(home, "file"), "");
  const folder = join(home, "none");
  expect(
    await Promise.all([
      run([], {}),
      run([folder], {}),
      run([folder], { BASE_RPC_URL: "ws://127.0.0.1:1", FETCH_PER_SECOND: "0", INDEX_SCOPE: "full" }),
      run([join(home, "file")], { BASE_RPC_URL: rpc.url }),
    ]),
  ).toEqual([
    expect.stringContaining("Usage: npm run index:fetch -- <folder>"),
    "FETCH_RPC_URLS is missing: expected the JSON-RPC URLs of Base nodes, or BASE_RPC_URL\n",
    expect.stringMatching(
      /BASE_RPC_URL is wrong.*FETCH_PER_SECOND is wrong.*INDEX_SCOPE is wrong: expected selective/s,
    ),
    expect.stringContaining("is not a folder to write to"),
  ]);
});
