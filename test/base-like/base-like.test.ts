import { setTimeout as sleep } from "node:timers/promises";
import { createPublicClient, type Hex, http, keccak256, parseGwei } from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, test } from "vitest";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import { startBaseLike } from "../support/base-like/base-like.ts";
import { BASE, HALT_MINUTES, POOL_ERRORS } from "../support/base-like/profiles.ts";
import { forFile } from "../support/for-file.ts";

// The stand-in for Base that journeys run on does what Base does.

const AT_ONCE = { ...BASE, backends: [{ lagMs: 0 }, { lagMs: 0 }] };
const base = await forFile(startBaseLike({ profile: AT_ONCE }));
const { chain } = base;
const client = createPublicClient({ transport: http(base.url, { retryCount: 0 }), cacheTime: 0 });
const usdc = chain.network.usdc.address;

const blockOf = async (blockTag: "latest" | "safe" | "finalized") => client.getBlock({ blockTag });

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
    const early = await signed({ nonce: 2 });
    await send(early);
    await expect(send(early)).rejects.toThrow(/already known/);
    base.pool.forget();
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

  test("takes a replacement for ten percent more of both fees, and not for less", async () => {
    base.halt();
    const at = async (maxFeePerGas: bigint, maxPriorityFeePerGas: bigint) =>
      send(await signed({ nonce: 0, maxFeePerGas, maxPriorityFeePerGas }));
    const first = await at(100_000_000n, 1_000_000n);
    const less = [
      [109_000_000n, 1_100_000n],
      [110_000_000n, 1_090_000n],
    ] as const;
    for (const [fee, tip] of less) await expect(at(fee, tip)).rejects.toThrow(/replacement transaction underpriced/);
    const second = await at(110_000_000n, 1_100_000n);
    expect(base.pool.waiting()).toEqual([second]);
    await base.resume();
    expect([await isMined(first), await isMined(second)]).toEqual([false, true]);
  });
});
