import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { MULTICALL3 } from "../../api/platform/chain/read-at-block.ts";
import { coverageOf } from "../../indexer/history/coverage.ts";
import { type FetchedRow, fetchInto, filesIn, readRows, startFetch } from "../indexer/fetched.ts";
import { createActor } from "../indexer/history.ts";
import { startBaseLike } from "../support/base-like/base-like.ts";
import { BASE, FREE_PLAN } from "../support/base-like/profiles.ts";
import { type Fault, logsUpTo, refuse, replyTo, sometimes } from "../support/chain/rpc.ts";
import { folderForFile, forFile } from "../support/for-file.ts";

// Real payments, fetched through a provider with limits, lagging nodes, rejections, and failures.

const USED = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const FINAL_MINUTES = 16;

const base = await startBaseLike({
  profile: { ...BASE, logs: { ...FREE_PLAN.logs, maxBlocks: 100n, maxLogs: 40 } },
});
await forFile({ end: base.stop });
const home = await folderForFile("trust-fetch-");
const { client, network } = base.chain;
const actor = createActor(base.chain, 7);
await base.chain.fund(MULTICALL3, 10n ** 9n);
const before = Number(await client.getBlockNumber());
for (let n = 0; n < 40; n += 1) await actor.act();
/** A block in the middle of the payments. */
const MIDDLE = Math.floor((before + Number(await client.getBlockNumber())) / 2);
await base.pass(FINAL_MINUTES);
await base.caughtUp();

/** Recounts every authorized transfer from the chain's raw logs, by definition. */
async function recount(last: number): Promise<readonly FetchedRow[]> {
  const logs = await client.getLogs({ address: network.usdc.address, fromBlock: 0n, toBlock: BigInt(last) });
  const rows: FetchedRow[] = [];
  for (const [index, log] of logs.entries()) {
    const [kind, from, to] = log.topics as string[];
    if (kind !== TRANSFER) continue;
    const before = logs[index - 1];
    if (before?.topics[0] !== USED || before.transactionHash !== log.transactionHash) continue;
    const { timestamp } = await client.getBlock({ blockNumber: log.blockNumber });
    rows.push({
      ...{ block: Number(log.blockNumber), time: Number(timestamp), transaction: log.transactionHash },
      ...{ log_index: log.logIndex, from: `0x${from?.slice(26)}`, to: `0x${to?.slice(26)}` },
      ...{ value: String(BigInt(log.data)), authorized: true },
    });
  }
  return rows;
}

afterEach(() => base.become(null));

let runs = 0;
/** Fetches everything into a new folder and compares it with a recount. */
async function expectExact() {
  runs += 1;
  const folder = join(home, String(runs));
  const { files, requests } = await fetchInto({ folder, urls: [base.url] });
  const last = files.at(-1)?.lastBlock ?? 0;
  const expected = await recount(last);
  expect(expected.length).toBeGreaterThan(30);
  expect(await readRows(folder)).toEqual(expected);
  return { folder, requests };
}

test("A busy or failing provider is retried as it requests", async () => {
  for (const status of [429, 503] as const) {
    base.busy(status, 2);
    const started = performance.now();
    await expectExact();
    if (status === 429) expect(performance.now() - started).toBeGreaterThanOrEqual(1_000);
  }
});

test("A lagging node, empty responses, nulls, and errors leave no hole", async () => {
  const nothing: Fault = async (call) => replyTo(call, null);
  const wrong: readonly Fault[] = [
    logsUpTo(MIDDLE),
    async (call) => replyTo(call, []),
    nothing,
    async (call) => refuse(call, -32000, "missing trie node"),
  ];
  const isOdd = (n: number) => n % 2 === 1;
  let turn = 0;
  const logs = sometimes("eth_getLogs", isOdd, (call, pass) => (wrong[turn++ % wrong.length] ?? nothing)(call, pass));
  const blocks = sometimes("eth_getBlockByNumber", isOdd, nothing);
  base.become((call, pass) => logs(call, async (given) => (await blocks(given, pass)) ?? replyTo(given, null)));
  await expectExact();
  expect(turn).toBeGreaterThan(wrong.length);
});

test("Two hashes for a final block end the fetch without a file for that day", async () => {
  const liar = sometimes(
    "eth_getBlockByNumber",
    (n) => n > 1,
    async (call, pass) => {
      const reply = await pass(call);
      const block = reply.result as { hash: string; number: string } | null;
      return call.params?.[0] === "finalized" || block === null
        ? reply
        : { ...reply, result: { ...block, hash: `0x${"77".repeat(32)}` } };
    },
  );
  base.become(liar);
  const folder = join(home, "liar");
  const why = await fetchInto({ folder, urls: [base.url] }).catch(({ message }: Error) => message);
  const [, block] = /^Block (\d+) is final, but has two hashes/.exec(String(why)) ?? [];
  expect(block, String(why)).toBeDefined();
  base.become(null);
  // The day before has a file if the chain began on it.
  expect(filesIn(folder).filter((name) => (coverageOf(name)?.lastBlock ?? Number(block)) >= Number(block))).toEqual([]);
});

test("A fetch that is killed leaves no file, and the next run fetches everything", async () => {
  const folder = join(home, "killed");
  let held: () => void = () => undefined;
  const holding = new Promise<void>((resolve) => {
    held = resolve;
  });
  base.become(
    sometimes(
      "eth_getLogs",
      (n) => n > 1,
      async () => {
        held();
        return new Promise(() => undefined);
      },
    ),
  );
  const env = { BASE_RPC_URL: base.url, FETCH_PER_SECOND: "1000", START_BLOCK: "0" };
  const killed = startFetch([folder], env);
  await holding;
  process.kill(killed.pid, "SIGKILL");
  expect((await killed.ended).code).toBeNull();
  expect(filesIn(folder)).toEqual([expect.stringMatching(/^\.unfinished-/)]);
  base.become(null);
  const { code, output } = await startFetch([folder], env).ended;
  expect(output).toMatch(/files, blocks 0 to \d+, \d+ requests/);
  expect(code).toBe(0);
  const files = filesIn(folder).map(coverageOf);
  expect(files).not.toContain(null);
  expect(await readRows(folder)).toEqual(await recount(files.at(-1)?.lastBlock ?? 0));
});

test("Several nodes share the work, and an unreachable one does no harm", async () => {
  const folder = join(home, "several");
  const { files } = await fetchInto({ folder, urls: ["http://127.0.0.1:9", base.url, base.url] });
  expect(await readRows(folder)).toEqual(await recount(files.at(-1)?.lastBlock ?? 0));
  for (let n = 0; n < 10; n += 1) await actor.act();
  await base.pass(FINAL_MINUTES);
  await base.caughtUp();
  const before = files.at(-1)?.lastBlock ?? 0;
  const next = await fetchInto({ folder, urls: [base.url], startBlock: null });
  expect(next.files.at(-1)?.lastBlock).toBeGreaterThan(before);
  expect(await readRows(folder)).toEqual(await recount(next.files.at(-1)?.lastBlock ?? 0));
});
