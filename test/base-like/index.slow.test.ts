import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type Address, createPublicClient, encodeFunctionData, type Hex, http, parseGwei, toHex } from "viem";
import { expect, test, vi } from "vitest";
import { MULTICALL3 } from "../../api/platform/chain/read-at-block.ts";
import { createActivityIndex } from "../../api/platform/index/activity.ts";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import { fetchInto } from "../indexer/fetched.ts";
import { createActor, SERVICE, WALLETS } from "../indexer/history.ts";
import { startPreload } from "../indexer/preloaded.ts";
import { readFacts } from "../indexer/recount.ts";
import { readTables, recountTables } from "../indexer/score-recount.ts";
import { startBaseLike } from "../support/base-like/base-like.ts";
import { FREE_PLAN } from "../support/base-like/profiles.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { launchIndexerOf } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";
import { waitUntil } from "../support/wait-until.ts";

// Two indexes follow a chain like Base through a provider whose nodes lag and reject wide ranges. One reads every
// block, and the other takes over fetched and preloaded data.

vi.setConfig({ testTimeout: 90_000 });
const CATCH_UP_MS = 40_000;
const stranger = (n: number): Address => `0x${"00".repeat(17)}fade4${n}`;
const [PAYEE, INSTEAD] = [stranger(0), stranger(1)];
const REMOVED = [stranger(2), stranger(3), stranger(4)];

const logs = { ...FREE_PLAN.logs, maxBlocks: 100n };
const base = await forFile(
  startBaseLike({ profile: { ...FREE_PLAN, batch: { ...FREE_PLAN.batch, max: 1_000 }, logs } }),
);
const { chain } = base;
const actor = createActor(chain, 8453);

async function follow(scope: "full" | "selective", history = "") {
  const database = await freshDatabase();
  const pool = await forFile(new pg.Pool({ connectionString: database.apiUrl, max: 2 }));
  const env = { INDEX_SCOPE: scope, PAY_TO_ADDRESS: SERVICE, START_BLOCK: "0", INDEX_HISTORY: history };
  if (history !== "") await preload(pool, { ...env, DATABASE_URL: database.indexerUrl, BASE_RPC_URL: base.url });
  const launched = await forFile(launchIndexerOf({ chain: { rpcUrl: base.url }, database, env }));
  const index = createActivityIndex(pool, { viewsSchema: "live", maxLagMs: Number.POSITIVE_INFINITY });
  return { scope, pool, launched, index };
}

/** The history tables that no index has taken over yet. */
async function historyTables(pool: pg.Pool): Promise<readonly string[]> {
  const text = "select relname from pg_class join pg_namespace n on n.oid = relnamespace where nspname = 'history'";
  const { rows } = await pool.query<{ relname: string }>(`${text} and relkind = 'r' and relname <> 'history'`);
  return rows.map(({ relname }) => relname);
}

/** Loads every final block with `npm run index:fetch` and `npm run index:preload`. */
async function preload(pool: pg.Pool, env: Readonly<Record<string, string>>): Promise<void> {
  const folder = await folderForFile("trust-base-");
  await fetchInto({ folder, urls: [base.url] });
  const { code, output } = await startPreload(folder, env).ended;
  expect(code, output).toBe(0);
  expect(await historyTables(pool)).toContain("wallet");
}

/** The oldest final block of many readings, because nodes lag. */
async function leastFinal(): Promise<bigint> {
  const client = createPublicClient({ transport: http(base.url) });
  let least: bigint | null = null;
  for (let reading = 0; reading < 12; reading += 1) {
    const { number } = await client.getBlock({ blockTag: "finalized" });
    if (least === null || number < least) least = number;
  }
  return least ?? 0n;
}

async function act(times: number): Promise<void> {
  for (let n = 0; n < times; n += 1) await chain.client.waitForTransactionReceipt({ hash: await actor.act() });
}

await chain.fund(MULTICALL3, 10n ** 9n);
await act(20);
const acted = await chain.client.getBlockNumber();
// Makes these blocks final on every node, so that they can be fetched.
await base.pass(16);
await act(5);
expect(await waitUntil(async () => (await leastFinal()) > acted, 40_000)).toBe(true);
const scopes = await Promise.all([follow("full"), follow("selective", "history")]);
await Promise.all(scopes.map(({ launched }) => launched.untilLogged("index ready")));

const plainTransfer = (to: Address) => ({
  ...{ from: WALLETS[4], to: chain.network.usdc.address },
  data: encodeFunctionData({ abi: USDC_ABI, functionName: "transfer", args: [to, 1n] }),
  // The highest fee makes it the first in its block.
  ...{ gas: toHex(100_000), maxFeePerGas: toHex(parseGwei("100")), maxPriorityFeePerGas: toHex(parseGwei("50")) },
});

const blockOf = async (hash: Hex) => Number((await chain.client.waitForTransactionReceipt({ hash })).blockNumber);

/** Replaces the blocks from this one to the head, with these transactions in the first new block. */
async function replaceFrom(block: number, transactions: readonly unknown[]): Promise<void> {
  const depth = Number(await chain.client.getBlockNumber()) - block + 1;
  await chain.client.request({ method: "anvil_reorg", params: [depth, transactions.map((one) => [one, 0])] } as never);
}

/** Makes new blocks, as Base does, because Ponder does not retry a head that it once failed to read. */
async function caughtUp({ scope, index, launched }: (typeof scopes)[number]): Promise<void> {
  for (const deadline = Date.now() + CATCH_UP_MS; ; await base.pass(1 / 30)) {
    const head = Number(await chain.client.getBlockNumber());
    if (await waitUntil(async () => (await index.position())?.block === head, 3_000)) return;
    if (Date.now() > deadline) throw new Error(`The ${scope} index did not reach ${head}. ${launched.output()}`);
  }
}

/** Expects every row to equal a recount from the chain's raw logs, at its head. */
async function expectRecount(): Promise<void> {
  const facts = await readFacts(chain, [SERVICE]);
  for (const one of scopes) {
    await caughtUp(one);
    expect(await readTables(one.pool), one.scope).toEqual(recountTables(facts, one.scope));
  }
}

test("Earlier blocks are read within the provider's limits or taken over from the history", async () => {
  await expectRecount();
  expect(await historyTables(scopes[1].pool)).toEqual([]);
});

test("Both indexes see every payment made while nodes lag, are busy, or are stuck", async () => {
  base.backend(1, { lagMs: 400 });
  await act(10);
  base.busy(429, 5);
  base.busy(503, 5);
  base.backend(2, { lastBlock: await chain.client.getBlockNumber() });
  await act(10);
  base.backend(2, { lastBlock: null });
  base.backend(1, { lagMs: 120 });
  await expectRecount();
});

test("A reorganization moves the position back together with the rows", async () => {
  const { pool } = scopes[0];
  const hashes: Hex[] = [];
  for (const to of REMOVED) hashes.push(await actor.pay({ from: 1, to, value: 1n }));
  const blocks = await Promise.all(hashes.map(blockOf));
  await expectRecount();
  const head = Number(await chain.client.getBlockNumber());
  await replaceFrom(blocks[0] ?? 0, [plainTransfer(INSTEAD)]);
  const there =
    "select array_agg('0x' || encode(wallet, 'hex') order by wallet) as there from live.wallet_day where '0x' || encode(wallet, 'hex') = any($1)";
  const text = `select coalesce(there, '{}') as there, block::int from (${there}) w left join live.position on true`;
  for (let isDone = false; !isDone; await sleep(2)) {
    const { block, there: found } = (await pool.query(text, [[...REMOVED, INSTEAD]])).rows[0];
    isDone = found.includes(INSTEAD);
    // First the removed blocks, until Ponder notices, and then their replacements.
    const before = REMOVED.filter((_, n) => (blocks[n] ?? 0) <= block);
    const after = block < (blocks[0] ?? 0) ? [] : [INSTEAD];
    expect([before, after], `at ${block} of ${head}`).toContainEqual(found);
  }
});

test("A payment that a reorganization moved within its block is found in its new position", async () => {
  const [batch] = (await actor.payAll([PAYEE], { from: 2, value: 50_000n })) as [Hex];
  const block = await blockOf(batch);
  await expectRecount();
  const raw = await chain.client.request({ method: "eth_getRawTransactionByHash", params: [batch] } as never);
  await replaceFrom(block, [plainTransfer(PAYEE), raw]);
  expect((await chain.client.getTransactionReceipt({ hash: batch })).logs[0]?.logIndex).toBe(1);
  await act(1);
  await expectRecount();
});

test("A reorganization removes its payments from the index", async () => {
  await act(3);
  await expectRecount();
  await chain.client.request({ method: "anvil_reorg", params: [3, []] } as never);
  await act(4);
  await expectRecount();
});

test("Minutes without a payment are followed to the head", async () => {
  await base.pass(5);
  await act(2);
  await expectRecount();
  for (const { launched } of scopes) expect(launched.logged("the indexer stopped and is restarting")).toEqual([]);
});
