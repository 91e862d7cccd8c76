import { setTimeout as sleep } from "node:timers/promises";
import { createPublicClient, createWalletClient, encodeFunctionData, type Hex, http, keccak256, parseGwei } from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, test } from "vitest";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import { startBaseLike } from "../support/base-like/base-like.ts";
import { BASE, FREE_PLAN, HALT_MINUTES, POOL_ERRORS } from "../support/base-like/profiles.ts";
import { forFile } from "../support/for-file.ts";

// The stand-in for Base that journeys run on does what Base and its providers do.

const AT_ONCE = { ...BASE, backends: [{ lagMs: 0 }, { lagMs: 0 }] };
const base = await forFile(startBaseLike({ profile: AT_ONCE }));
const { chain } = base;
const client = createPublicClient({ transport: http(base.url, { retryCount: 0 }), cacheTime: 0 });
const usdc = chain.network.usdc.address;

const blockOf = async (blockTag: "latest" | "safe" | "finalized") => client.getBlock({ blockTag });
const headOf = async () => (await chain.client.getBlock()).number;

async function ask(body: unknown): Promise<Response> {
  return fetch(base.url, { method: "POST", body: JSON.stringify(body) });
}
const call = (id: number, method: string, ...params: unknown[]) => ({ jsonrpc: "2.0", id, method, params });

let sender: PrivateKeyAccount;
let nonce: number;

beforeEach(async () => {
  sender = privateKeyToAccount(generatePrivateKey());
  nonce = 0;
  await chain.setBalance(sender.address, 10n ** 20n);
});

/** A signed transfer of nothing; each has the next nonce, unless `fields` say otherwise. */
const signed = (fields: Partial<Record<"maxFeePerGas" | "maxPriorityFeePerGas", bigint>> & { nonce?: number } = {}) =>
  sender.signTransaction({
    type: "eip1559",
    chainId: chain.network.chainId,
    nonce: fields.nonce ?? nonce++,
    gas: 21_000n,
    maxFeePerGas: parseGwei("1"),
    maxPriorityFeePerGas: 1_000_000n,
    to: sender.address,
    ...fields,
  });
const send = (serializedTransaction: Hex) => client.sendRawTransaction({ serializedTransaction });
const isMined = async (hash: Hex) =>
  (await client.getTransactionReceipt({ hash }).catch(() => null))?.status === "success";

describe("time", () => {
  test("blocks are two seconds apart, safe is 30 behind and finalized 450, whose state is known", async () => {
    const head = await blockOf("latest");
    const before = await client.getBlock({ blockNumber: head.number - 1n });
    expect(head.timestamp - before.timestamp).toBe(2n);
    expect((await blockOf("safe")).number).toBe(head.number - 30n);
    expect((await blockOf("finalized")).number).toBe(head.number - 450n);
    const balanceOf = {
      address: usdc,
      abi: USDC_ABI,
      functionName: "balanceOf",
      args: [devAccount(0).address],
    } as const;
    expect(await client.readContract({ ...balanceOf, blockTag: "finalized" })).toBe(10_000_000_000n);
  });

  test("fifteen minutes make what is at the head final, and cost no fifteen minutes", async () => {
    const before = await blockOf("latest");
    const started = performance.now();
    await base.pass(15);
    expect(performance.now() - started).toBeLessThan(5_000);
    expect((await blockOf("latest")).timestamp).toBeGreaterThanOrEqual(before.timestamp + 900n);
    expect((await blockOf("finalized")).number).toBeGreaterThanOrEqual(before.number);
    expect(base.unixNow()).toBeGreaterThanOrEqual(before.timestamp + 900n);
  });

  test("the clock runs between blocks, and is never behind them", async () => {
    const before = base.now().getTime();
    await sleep(30);
    expect(base.now().getTime() - before).toBeGreaterThanOrEqual(29);
    await send(await signed());
    expect(base.unixNow()).toBeGreaterThanOrEqual((await blockOf("latest")).timestamp);
  });

  test("a halt makes no block while the clock runs; afterwards the chain catches up", async () => {
    const before = await blockOf("latest");
    base.halt();
    const hash = await send(await signed());
    await base.pass(HALT_MINUTES);
    expect([(await blockOf("latest")).number, await isMined(hash)]).toEqual([before.number, false]);
    expect(base.unixNow() - before.timestamp).toBeGreaterThanOrEqual(BigInt(HALT_MINUTES * 60));
    expect(base.pool.waiting()).toEqual([hash]);
    expect(await client.getTransactionCount({ address: sender.address, blockTag: "pending" })).toBe(1);
    await base.resume();
    expect(await isMined(hash)).toBe(true);
    expect((await blockOf("latest")).timestamp).toBeGreaterThanOrEqual(before.timestamp + BigInt(HALT_MINUTES * 60));
  });
});

describe("fees", () => {
  test("a spike of fifty times shows in the market, and what offers less waits until it is over", async () => {
    await base.fees(50);
    expect((await blockOf("latest")).baseFeePerGas).toBe(BASE.baseFee * 50n);
    const { maxFeePerGas, maxPriorityFeePerGas } = await client.estimateFeesPerGas();
    expect(maxPriorityFeePerGas).toBe(BASE.priorityFee);
    expect(maxFeePerGas).toBe((BASE.baseFee * 50n * 12n) / 10n + BASE.priorityFee);
    const hash = await send(await signed({ maxFeePerGas: BASE.baseFee * 10n }));
    await base.pass(1);
    expect(await isMined(hash)).toBe(false);
    await base.fees(1);
    expect(await isMined(hash)).toBe(true);
  });
});

describe("the pool", () => {
  test("forgets what waits: handed in again, it is mined", async () => {
    base.halt();
    const raw = await signed();
    const hash = await send(raw);
    expect(await client.getTransaction({ hash })).toMatchObject({ blockNumber: null, nonce: 0 });
    base.pool.forget();
    await base.resume();
    await base.pass(1);
    expect(await isMined(hash)).toBe(false);
    expect(await send(raw)).toBe(hash);
    expect(await isMined(hash)).toBe(true);
  });

  test("swallows what it acknowledges", async () => {
    base.pool.fate("swallowed");
    const raw = await signed();
    const hash = await send(raw);
    expect(hash).toBe(keccak256(raw));
    await base.pass(1);
    expect([base.pool.waiting(), await isMined(hash)]).toEqual([[], false]);
  });

  test("refuses with the words of a node", async () => {
    base.pool.fate({ refusedWith: POOL_ERRORS.full });
    await expect(send(await signed({ nonce: 0 }))).rejects.toThrow(/txpool is full/);
    await send(await signed({ nonce: 0 }));
    await expect(send(await signed({ nonce: 0 }))).rejects.toThrow(/nonce too low/i);
  });

  test("mines a transaction after twenty minutes, and those behind it then", async () => {
    base.pool.fate({ afterMinutes: 20 });
    const late = await send(await signed());
    const behind = await send(await signed());
    await base.pass(19.9);
    expect([await isMined(late), await isMined(behind)]).toEqual([false, false]);
    await base.pass(0.2);
    expect([await isMined(late), await isMined(behind)]).toEqual([true, true]);
  });

  test("takes a replacement for ten percent more, and not for less", async () => {
    base.halt();
    const at = async (maxFeePerGas: bigint, maxPriorityFeePerGas: bigint) =>
      send(await signed({ nonce: 0, maxFeePerGas, maxPriorityFeePerGas }));
    const first = await at(100_000_000n, 1_000_000n);
    await expect(at(109_000_000n, 1_100_000n)).rejects.toThrow(/replacement transaction underpriced/);
    const second = await at(110_000_000n, 1_100_000n);
    expect(base.pool.waiting()).toEqual([second]);
    await base.resume();
    expect([await isMined(first), await isMined(second)]).toEqual([false, true]);
  });
});

describe("several backends behind one URL", () => {
  const transferOf = async () => {
    const data = encodeFunctionData({ abi: USDC_ABI, functionName: "transfer", args: [sender.address, 5n] });
    const wallet = createWalletClient({ account: devAccount(3), transport: http(chain.rpcUrl) });
    const hash = await wallet.sendTransaction({ chain: null, to: usdc, data });
    return chain.client.waitForTransactionReceipt({ hash });
  };

  test("one that stands still has neither the block nor its logs and receipts; the items of one batch differ", async () => {
    const head = await headOf();
    base.backend(1, { standsAt: head });
    try {
      const { transactionHash, blockNumber } = await transferOf();
      const twice = (method: string, ...params: unknown[]) => [call(1, method, ...params), call(2, method, ...params)];
      const both = async (method: string, ...params: unknown[]) => {
        const replies = (await (await ask(twice(method, ...params))).json()) as { result: unknown }[];
        return replies.map(({ result }) => result).sort((a, b) => Number(isNothing(a)) - Number(isNothing(b)));
      };
      const isNothing = (result: unknown) => result === null || (Array.isArray(result) && result.length === 0);
      const at = `0x${blockNumber.toString(16)}`;
      expect((await both("eth_getTransactionReceipt", transactionHash)).map(isNothing)).toEqual([false, true]);
      expect((await both("eth_getBlockByNumber", at, false)).map(isNothing)).toEqual([false, true]);
      expect((await both("eth_getLogs", { address: usdc, fromBlock: at, toBlock: at })).map(isNothing)).toEqual([
        false,
        true,
      ]);
      expect(new Set(await both("eth_blockNumber"))).toEqual(new Set([at, `0x${head.toString(16)}`]));
    } finally {
      base.backend(1, { standsAt: null });
    }
  });

  test("one with a hole has the block's state but neither its logs nor its receipts", async () => {
    const { transactionHash: hash, blockNumber } = await transferOf();
    for (const index of [0, 1]) base.backend(index, { holes: [[blockNumber, blockNumber]] });
    const logs = () => client.getLogs({ address: usdc, fromBlock: blockNumber, toBlock: blockNumber });
    expect(await logs()).toEqual([]);
    await expect(client.getTransactionReceipt({ hash })).rejects.toThrow(/could not be found/);
    const args = [sender.address] as const;
    expect(await client.readContract({ address: usdc, abi: USDC_ABI, functionName: "balanceOf", args })).toBe(5n);
    for (const index of [0, 1]) base.backend(index, { holes: [] });
    expect(await logs()).toHaveLength(1);
  });

  test("one that lags catches up by itself", async () => {
    const lagging = await startBaseLike({ profile: { ...BASE, backends: [{ lagMs: 200 }] } });
    const late = createPublicClient({ transport: http(lagging.url), cacheTime: 0 });
    try {
      const before = await late.getBlockNumber();
      await lagging.pass(1);
      expect(await late.getBlockNumber()).toBe(before);
      await expect.poll(() => late.getBlockNumber(), { interval: 20 }).toBe(before + 30n);
    } finally {
      await lagging.stop();
    }
  });
});

describe("a provider's limits", () => {
  test("getLogs of more than 10,000 blocks is refused in the provider's words", async () => {
    const head = await headOf();
    const logs = { address: usdc, fromBlock: "0x0", toBlock: `0x${(head + 10_000n).toString(16)}` };
    const single = await ask(call(7, "eth_getLogs", logs));
    expect([single.status, await single.json()]).toMatchObject([413, { id: 7, error: { code: -32614 } }]);
    const [batched] = (await (await ask([call(1, "eth_getLogs", logs), call(2, "eth_chainId")])).json()) as object[];
    expect(batched).toMatchObject({ id: 1, error: { message: "eth_getLogs is limited to a 10,000 range" } });
  });

  test("a free plan takes 10 blocks and 20 calls at once", async () => {
    const free = await startBaseLike({ profile: FREE_PLAN });
    try {
      const cheap = createPublicClient({ transport: http(free.url, { retryCount: 0 }) });
      const head = await cheap.getBlockNumber();
      const logs = (blocks: bigint) => cheap.getLogs({ fromBlock: head - blocks + 1n, toBlock: head });
      expect(await logs(10n)).toEqual([]);
      await expect(logs(11n)).rejects.toThrow(/up to a 10 block range/);
      const calls = Array.from({ length: 21 }, (_, id) => call(id, "eth_chainId"));
      const post = (body: unknown) => fetch(free.url, { method: "POST", body: JSON.stringify(body) });
      expect(await (await post(calls)).json()).toMatchObject({ error: { message: "batch too large" } });
      expect(await (await post(calls.slice(1))).json()).toHaveLength(20);
    } finally {
      await free.stop();
    }
  });

  test("busy, it answers 429 or 503 as often as it is told, then works", async () => {
    for (const status of [429, 503] as const) {
      base.busy(status, 2);
      const answers = [await ask(call(1, "eth_chainId")), await ask(call(1, "eth_chainId"))];
      expect(answers.map((answer) => answer.status)).toEqual([status, status]);
      expect((await ask(call(1, "eth_chainId"))).status).toBe(200);
    }
  });
});

test("what was asked is counted by method, each item of a batch", async () => {
  base.calls.reset();
  await ask([call(1, "eth_chainId"), call(2, "eth_chainId"), call(3, "eth_blockNumber")]);
  await ask(call(1, "eth_blockNumber"));
  expect(base.calls.byMethod()).toEqual({ eth_blockNumber: 2, eth_chainId: 2 });
  expect([base.calls.total(), base.calls.requests()]).toEqual([4, 2]);
});
