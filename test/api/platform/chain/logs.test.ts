import { createPublicClient, http, type PublicClient } from "viem";
import { beforeEach, expect, test } from "vitest";
import { createLogSearch } from "../../../../api/platform/chain/log-search.ts";
import { type BlockRange, createLogReader } from "../../../../api/platform/chain/logs.ts";
import { createAllowance } from "../../../../api/platform/chain/pace.ts";
import { startTestChain } from "../../../support/chain/chain.ts";
import { startFaultyNode } from "../../../support/chain/nodes.ts";
import { refuse } from "../../../support/chain/rpc.ts";
import { forFile } from "../../../support/for-file.ts";

const chain = await forFile(startTestChain());
await chain.mine(1_000);
const head = await chain.client.getBlockNumber();
const node = await forFile(startFaultyNode(chain));
const client: PublicClient = createPublicClient({ transport: http(node.url) });
const { address } = chain.network.usdc;
const filter = { address, topics: [] };
const NOTHING = { address: `0x${"00".repeat(19)}01`, topics: [] } as const;

let asked: BlockRange[] = [];
let time = 0;
const reader = () => createLogReader({ client, mostBlocks: 400, now: () => time });
const widths = () => asked.map(({ from, to }) => Number(to - from + 1n));

/** The provider refuses ranges of more blocks, in its words. */
function refusing(blocks: number, words: string): void {
  node.become(async (call, pass) => {
    const [range] = call.params as [{ fromBlock: string; toBlock: string }];
    const [from, to] = [BigInt(range.fromBlock), BigInt(range.toBlock)];
    asked.push({ from, to });
    return to - from + 1n > BigInt(blocks) ? refuse(call, -32_602, words) : pass(call);
  });
}

beforeEach(() => {
  asked = [];
  time = 0;
  node.become(null);
});

async function readAll(logs: ReturnType<typeof reader>, range: BlockRange) {
  const read: BlockRange[] = [];
  for await (const page of logs.pages(filter, range)) read.push(page.read);
  return read;
}

test("every block of a range is read once, whatever the provider refuses", async () => {
  refusing(150, "block range is too large");
  const read = await readAll(reader(), { from: 1n, to: 1_000n });
  let next = 1n;
  for (const { from, to } of read) {
    expect(from).toBe(next);
    next = to + 1n;
  }
  expect(next).toBe(1_001n);
});

test("what it refuses is not asked again, and tried again after ten minutes", async () => {
  refusing(150, "range 400 exceeds limit of 150");
  const logs = reader();
  await readAll(logs, { from: 1n, to: 600n });
  expect(widths()).toEqual([400, 150, 150, 150, 150]);
  time = 599_999;
  expect(logs.width()).toBe(150n);
  time = 600_000;
  expect(logs.width()).toBe(300n);
  await readAll(logs, { from: 1n, to: 150n });
  await readAll(logs, { from: 1n, to: 300n });
  expect(widths().slice(-3)).toEqual([300, 150, 150]);
  expect(logs.width()).toBe(150n);
  time = 10_000_000;
  expect(logs.width()).toBe(400n);
});

test("a range with too many logs says nothing about others", async () => {
  refusing(150, "query returned more than 10000 results");
  const logs = reader();
  await readAll(logs, { from: 1n, to: 100n });
  await readAll(logs, { from: 1n, to: 200n });
  expect(logs.width()).toBe(400n);
});

test("refusals count: a look-up never makes more calls than it may", async () => {
  refusing(1, "block range is too large");
  const allowance = createAllowance(3);
  expect(await reader().page(filter, { from: 1n, to: 400n }, { at: "end", allowance })).toBeNull();
  expect(widths()).toEqual([400, 200, 100]);
  expect(asked.every(({ to }) => to === 400n)).toBe(true);
});

test("a search goes on where the last one stopped, and gives up after a minute without a log", async () => {
  refusing(100, "block range is too large");
  const logs = createLogReader({ client, mostBlocks: 100, now: () => time });
  const search = createLogSearch({ logs, blockSeconds: 2, pause: async () => undefined, now: () => time });
  const area = { from: 1n, to: 500n, start: 301n, first: "up", head } as const;
  const look = () =>
    search({ key: "one", filter: NOTHING, area, read: () => null, blockOf: () => 0n, allowance: createAllowance(2) });
  expect([await look(), await look(), await look()]).toEqual(["unfinished", "unfinished", "unfinished"]);
  expect(asked.map(({ from }) => Number(from))).toEqual([301, 401, 201, 101, 1]);
  time = 60_001;
  for (let times = 0; times < 2; times++) expect(await look()).toBe("unfinished");
  expect(await look()).toBe("nowhere");
});
