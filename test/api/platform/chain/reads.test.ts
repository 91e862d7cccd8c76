import { createPublicClient, http } from "viem";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createChain } from "../../../../api/platform/chain/chain.ts";
import { type Call, readAtBlock } from "../../../../api/platform/chain/read-at-block.ts";
import { isTransport } from "../../../../api/platform/chain/rpc.ts";
import { usdcCalls } from "../../../../api/platform/chain/usdc.ts";
import { watchBlocks } from "../../../../api/platform/relayer/places.ts";
import { createAuthorizationReader } from "../../../../api/settlement-status/chain.ts";
import { startTestChain } from "../../../support/chain/chain.ts";
import { startFaultyNode } from "../../../support/chain/nodes.ts";
import { forFile } from "../../../support/for-file.ts";
import { broadcast } from "../../../support/payments/on-chain.ts";
import { newPayer, signPayment } from "../../../support/payments/signing.ts";

describe("reads at one block", async () => {
  const chain = await forFile(startTestChain());
  const node = await forFile(startFaultyNode(chain));
  const client = createPublicClient({ transport: http(node.url, { retryCount: 0 }) });
  const { balanceOf, isUsed, isPaused, isBlacklisted } = usdcCalls(chain.network.usdc.address);

  const payer = await newPayer(chain);
  const signed = await signPayment(payer);
  const { from, nonce, value } = signed.authorization;
  const { blockNumber: settled } = await chain.client.getTransactionReceipt({ hash: await broadcast(chain, signed) });
  await chain.mine(3);

  beforeEach(() => node.become(null));

  test("all results come from one block, before and after a settlement", async () => {
    const [balance, used] = [balanceOf(from), isUsed(from, nonce)];
    const bars = [isPaused(), isBlacklisted(from)];
    const calls = [balance, used, ...bars];
    const at = (blockNumber: bigint) => readAtBlock(client, { calls, blockNumber });
    const [before, after, newest] = [await at(settled - 1n), await at(settled), await readAtBlock(client, { calls })];
    const { number, timestamp } = await chain.client.getBlock({ blockNumber: settled });
    expect([after.number, after.time]).toEqual([number, timestamp]);
    expect([before.of(used), after.of(used), newest.of(used)]).toEqual([false, true, true]);
    expect(before.of(balance) - after.of(balance)).toBe(BigInt(value));
    expect(bars.map((bar) => newest.of(bar))).toEqual([false, false]);
  });

  test("a node that answers at another block than the one that was asked for is not believed", async () => {
    node.become((call, pass) => {
      const [request] = (call.params ?? []) as readonly unknown[];
      return pass(call.method === "eth_call" ? { ...call, params: [request, "latest"] } : call);
    });
    const read = readAtBlock(client, { calls: [isUsed(from, nonce)], blockNumber: settled - 1n });
    await expect(read).rejects.toThrow(`was asked at block ${settled - 1n} and answered at block`);
  });

  test("a call that reverts, or that no contract answers, gives no result, and the node is not at fault", async () => {
    const elsewhere = usdcCalls("0x00000000000000000000000000000000000c0de5").isPaused();
    const reverting: Call<boolean> = { ...isPaused(), callData: "0xdeadbeef" };
    for (const call of [elsewhere, reverting]) {
      const read = readAtBlock(client, { calls: [call] }).then(({ of }) => of(call));
      const error = await read.catch((thrown: unknown) => thrown);
      expect([error instanceof Error, isTransport(error)]).toEqual([true, false]);
    }
    const { of } = await readAtBlock(client, { calls: [isPaused()] });
    expect(() => of(elsewhere)).toThrow("this call was not made");
  });
});

describe("old states", async () => {
  // What a real node shows of a block that is long over: which block a time belongs to, and what had been used by then.

  const chain = await forFile(startTestChain());
  const source = createChain("eip155:8453", { rpcUrl: chain.rpcUrl, logBlockRange: 1_000 });
  const reader = createAuthorizationReader(source, chain.network);

  const blockAt = async (blockNumber: bigint) => {
    const { number, hash, timestamp: time } = await chain.client.getBlock({ blockNumber });
    return { number: Number(number), hash, time };
  };

  test("a nonce had not been used by the block before its use, and had been from then on", async () => {
    const signed = await signPayment(await newPayer(chain));
    const transactionHash = await broadcast(chain, signed);
    await chain.mine(5);
    const { blockNumber } = await chain.client.getTransactionReceipt({ hash: transactionHash });
    const { from, nonce } = signed.authorization;
    const used = Number(blockNumber);
    const states = [used - 1, used, used + 5].map((block) => reader.usedBy({ from, nonce }, block));
    expect(await Promise.all(states)).toEqual([false, true, true]);
    await expect(reader.usedBy({ from, nonce }, used + 1_000)).rejects.toThrow();
  });

  test("the first block since a time is found in a few calls, and a later one where the chain stood still in between", async () => {
    await chain.client.mine({ blocks: 20, interval: 2 });
    const before = await chain.client.getBlockNumber();
    await chain.increaseTime(5_000);
    await chain.client.mine({ blocks: 40, interval: 2 });
    const final = await blockAt(await chain.client.getBlockNumber());
    for (const back of [0, 1, 2, 30]) {
      const block = await blockAt(BigInt(final.number - back));
      expect(await reader.blockSince(block.time, final)).toEqual(block);
      expect(await reader.blockSince(block.time - 1n, final)).toEqual(block);
    }
    for (const number of [before - 10n, before, before + 1n]) {
      const { time } = await blockAt(number);
      const since = await reader.blockSince(time - 1n, final);
      expect(since).toEqual(await blockAt(BigInt(since.number)));
      expect(since.time).toBeGreaterThanOrEqual(time - 1n);
    }
  });
});

describe("the next block", () => {
  beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
  afterEach(() => vi.useRealTimers());

  const BLOCK_MS = 2_000;

  /** A chain with a block every two seconds, the first at `first`, and how often it was asked. */
  function chainFrom(first: number) {
    const began = performance.now();
    const since = () => performance.now() - began;
    let asked = 0;
    const getBlockNumber = async () => {
      asked++;
      return BigInt(Math.max(0, Math.floor((since() - first) / BLOCK_MS) + 1));
    };
    return { asked: () => asked, since, nextBlock: watchBlocks({ getBlockNumber }) };
  }

  test.each([0, 137, 900, 1_990])("a block is noticed within 100 ms (first at %i)", async (first) => {
    const { nextBlock, since } = chainFrom(first);
    const times: number[] = [];
    const watching = (async () => {
      while (times.length < 8) {
        await nextBlock(60_000);
        times.push(since());
      }
    })();
    await vi.advanceTimersByTimeAsync(BLOCK_MS * 10);
    await watching;
    for (const time of times.slice(1)) expect((time - first) % BLOCK_MS).toBeLessThanOrEqual(101);
  });

  test("one caller asks for all who wait, and the chain is not asked while nobody waits", async () => {
    const { asked, nextBlock } = chainFrom(500);
    await vi.advanceTimersByTimeAsync(10);
    const waits = Promise.all(Array.from({ length: 20 }, () => nextBlock(60_000)));
    await vi.advanceTimersByTimeAsync(3_000);
    await waits;
    const before = asked();
    expect(before).toBeLessThan(10);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked()).toBe(before);
  });

  test("a chain that halts, or a node that does not answer, keeps nobody longer than asked", async () => {
    const broken = watchBlocks({ getBlockNumber: () => Promise.reject(new Error("away")) });
    const woken = vi.fn();
    void broken(500).then(woken);
    await vi.advanceTimersByTimeAsync(499);
    expect(woken).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(woken).toHaveBeenCalledOnce();
  });
});
