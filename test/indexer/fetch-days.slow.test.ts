import { readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { expect, onTestFinished, test, vi } from "vitest";
import { fetchedFiles, lockFolder, writeFetched } from "../../indexer/fetch/files.ts";
import { openDuck } from "../../indexer/history/duck.ts";
import { UnfitHistoryError } from "../../indexer/history/history.ts";
import { readFiles } from "../../indexer/history/transfers.ts";
import { startFaultyNode } from "../support/chain/nodes.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { generateChain, writeCsv } from "../support/indexer/generated-chain.ts";
import { serveChain } from "../support/indexer/rpc-server.ts";
import { freshDatabase } from "../support/service/database.ts";
import { fetchInto, filesIn, readRows, startFetch } from "./fetched.ts";
import { load } from "./preloaded.ts";

// A generated chain of a few days, four hours a block; its transfers end where the fetch does, ten blocks behind the head.

const CHAIN = generateChain({ transfers: 960, perBlock: 20, endsAt: 1_795_000_000, secondsPerBlock: 14_400 });
const DAY_SECONDS = 86_400;
const rpc = await serveChain({ ...CHAIN, head: CHAIN.last + 30 });
await forFile({ end: async () => rpc.close() });
const node = await forFile(startFaultyNode({ rpcUrl: rpc.url }));
const home = await folderForFile("trust-fetch-days-");
const { ownerUrl } = await freshDatabase();
const expected = Array.from({ length: CHAIN.last }, (_, n) => n + 1).flatMap((block) =>
  CHAIN.transfersOf(block).map(({ logIndex, value, ...transfer }) => ({
    ...{ block, time: CHAIN.timeOf(block), log_index: logIndex, value: String(value) },
    ...transfer,
  })),
);
const fetched = (folder: string, scope: "full" | "selective" | null) =>
  fetchInto({ folder, urls: [rpc.url], scope, startBlock: 1 });

test("a file holds the transfers of one UTC day, and all of them follow each other", async () => {
  const folder = join(home, "full");
  const { files } = await fetched(folder, "full");
  expect(await readRows(folder)).toEqual(expected);
  expect(files.length).toBeGreaterThan(7);
  const dayOf = (block: number) => Math.floor(CHAIN.timeOf(block) / DAY_SECONDS);
  for (const [index, { firstBlock, lastBlock }] of files.entries()) {
    expect(dayOf(firstBlock)).toBe(dayOf(lastBlock));
    expect(firstBlock).toBe((files[index - 1]?.lastBlock ?? 0) + 1);
  }
  expect(files.at(-1)?.lastBlock).toBe(CHAIN.last);
});

test("a history from the files is that from a CSV", async () => {
  const csv = join(home, "transfers.csv");
  await writeCsv(CHAIN, csv);
  const whole = await load(ownerUrl, csv);
  expect(await load(ownerUrl, join(home, "full"))).toEqual(whole);
});

test("of payments only, which is the default, authorized ones are in the files", async () => {
  const folder = join(home, "selective");
  await fetched(folder, null);
  expect(await readRows(folder)).toEqual(expected.filter(({ authorised }) => authorised));
  await expect(load(ownerUrl, folder)).rejects.toThrow("has authorized payments only, but INDEX_SCOPE is full");
  await expect(load(ownerUrl, folder, { START_BLOCK: "0", INDEX_SCOPE: "selective" })).rejects.toThrow(
    "START_BLOCK is 0, but the files begin at block 1",
  );
  await expect(fetched(folder, "full")).rejects.toThrow("is of scope selective, but INDEX_SCOPE is full");
});

test("a day that is missing is fetched again, and no history is made without it", async () => {
  const folder = join(home, "full");
  const third = filesIn(folder)[2] ?? "";
  rmSync(join(folder, third));
  await expect(load(ownerUrl, folder)).rejects.toThrow(/blocks \d+ to \d+ are missing between .*gz/);
  // In the scope of the others, if no other is asked for.
  const { requests } = await fetched(folder, null);
  expect(filesIn(folder)[2]).toBe(third);
  expect(requests).toBeLessThan(20);
  expect(await readRows(folder)).toEqual(expected);
});

test("a file that is foreign, or covers a block twice, is named", async () => {
  const [folder, full] = [join(home, "selective"), join(home, "full")];
  const [first = ""] = filesIn(full);
  await expect(load(ownerUrl, [folder, join(full, first)], { INDEX_SCOPE: "selective" })).rejects.toThrow(
    /overlap: remove one of them/,
  );
  const foreign = join(import.meta.dirname, "preload-transfers-bytes.parquet");
  await expect(load(ownerUrl, [full, foreign])).rejects.toThrow("give only one kind");
  const other = join(folder, "other.csv");
  writeFileSync(other, "");
  await expect(fetched(folder, "selective")).rejects.toThrow(`${other} is not from npm run index:fetch`);
  rmSync(other);
});

test("a node that is behind holds the others back, and is told of", async () => {
  const folder = join(home, "behind");
  const told: string[] = [];
  const run = () => fetchInto({ folder, urls: [rpc.url, node.url], startBlock: 1, tell: (line) => told.push(line) });
  node.become(async (call, pass) =>
    pass(call.params?.[0] === "finalized" ? { ...call, params: ["0x9", false] } : call),
  );
  expect((await run()).files.at(-1)?.lastBlock).toBe(9);
  expect(told[0]).toMatch(
    /^The newest block that is final on every node is 9, of 20\d\d-.*Z: over an hour ago\. If Base has not halted/,
  );
  node.become(null);
  told.splice(0);
  onTestFinished(() => void vi.useRealTimers());
  vi.setSystemTime(CHAIN.timeOf(CHAIN.last) * 1_000 + 1_800_000);
  expect((await run()).files.at(-1)?.lastBlock).toBe(CHAIN.last);
  expect(told.filter((line) => line.includes("is final on every node"))).toEqual([]);
});

test("a bit that flips in a file changes no row unnoticed, nor does a file that is cut off or renamed", async () => {
  const FLIPS = 100;
  const folder = join(home, "full");
  const name = filesIn(folder)[1] ?? "";
  const whole = readFileSync(join(folder, name));
  const duck = await openDuck(join(home, "flipped"));
  const file = join(home, name);
  const readAs = async (bytes: Buffer) => {
    writeFileSync(file, bytes);
    await duck.run("drop table if exists raw");
    return (await readFiles(duck, [file], { startBlock: null, scope: "full" })).hash;
  };
  const hash = await readAs(whole);
  let refused = 0;
  for (let n = 0; n < FLIPS; n += 1) {
    const bit = (Math.imul(n + 1, 0x9e3779b1) >>> 0) % (whole.length * 8);
    const flipped = Buffer.from(whole);
    flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    // Some bits of gzip's header have no meaning.
    const read = await readAs(flipped).catch((error: unknown) => error);
    if (read === hash) continue;
    expect(read, `bit ${bit}`).toBeInstanceOf(UnfitHistoryError);
    expect((read as Error).message).toContain(`${file} is damaged or not complete`);
    refused += 1;
  }
  expect(refused).toBeGreaterThan(0.9 * FLIPS);
  await expect(readAs(whole.subarray(0, -1))).rejects.toThrow(`${file} is damaged or not complete`);
  const other = readFileSync(join(folder, filesIn(folder)[2] ?? ""));
  await expect(readAs(other)).rejects.toThrow(/in it are not those in its name$/);
  duck.close();
});

test("one run at a time writes to a folder; what it has written is read meanwhile, and the next run goes on", async () => {
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
  const env = { BASE_RPC_URL: node.url, FETCH_PER_SECOND: "1000", INDEX_SCOPE: "full", START_BLOCK: "1" };
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
  await expect(fetched(folder, "full")).rejects.toThrow(`Another index:fetch is writing to ${folder}`);
  const { lastBlock } = await load(ownerUrl, folder);
  expect(written.at(-1)).toContain(`-${lastBlock}-`);
  released.resolve();
  expect(await running.ended).toMatchObject({ code: 0 });
  expect(filesIn(folder)).toEqual(filesIn(join(home, "full")));
  expect(await readRows(folder)).toEqual(expected);
});

test("a disk that is full leaves no file, and says so; with space, the next run goes on", async () => {
  const folder = join(home, "disk");
  const release = await lockFolder(folder);
  const hashes = { parentHash: "12".repeat(8), lastHash: "34".repeat(8) };
  const coverage = { day: "2026-11-01", scope: "selective", firstBlock: 1, lastBlock: 2, ...hashes } as const;
  const hash = `0x${"12".repeat(32)}`;
  const line = `1,1795000000,${hash},0,0x${"a1".repeat(20)},0x${"a2".repeat(20)},7,true\n`;
  const write = () => writeFetched(folder, coverage, Readable.from([line]));
  symlinkSync("/dev/full", join(folder, ".unfinished.csv.gz"));
  await expect(write()).rejects.toThrow(
    /^.*2026-11-01.* could not be written: .*no space left.* Run it again to go on$/i,
  );
  expect(fetchedFiles(folder)).toEqual([]);
  await write();
  expect(fetchedFiles(folder)).toMatchObject([coverage]);
  release();
  expect(filesIn(folder)).toEqual([expect.stringMatching(/^2026-11-01-selective-1-2-.*\.csv\.gz$/)]);
});

test("wrong settings and arguments are named", async () => {
  const other = generateChain({ transfers: 40, perBlock: 8, endsAt: 1_795_000_000 });
  expect(other.last).toBe(5);
  const run = async (args: readonly string[], env: Record<string, string>) => {
    const { code, said } = await startFetch(args, env).ended;
    expect(code).toBe(1);
    return said;
  };
  writeFileSync(join(home, "file"), "");
  const folder = join(home, "none");
  expect(
    await Promise.all([
      run([], {}),
      run([folder], {}),
      run([folder], { BASE_RPC_URL: "ws://127.0.0.1:1", FETCH_PER_SECOND: "0", INDEX_SCOPE: "some" }),
      run([join(home, "file")], { BASE_RPC_URL: rpc.url }),
    ]),
  ).toEqual([
    expect.stringContaining("Usage: npm run index:fetch -- <folder>"),
    "FETCH_RPC_URLS is missing: expected the JSON-RPC URLs of Base nodes, or BASE_RPC_URL\n",
    expect.stringMatching(/BASE_RPC_URL is wrong.*FETCH_PER_SECOND is wrong.*INDEX_SCOPE is wrong/s),
    expect.stringContaining("is not a folder to write to"),
  ]);
});
