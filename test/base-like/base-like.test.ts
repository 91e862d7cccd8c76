import {
  createPublicClient,
  createWalletClient,
  encodeFunctionData,
  type Hex,
  http,
  parseAbiItem,
  parseGwei,
} from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, test } from "vitest";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import { startBaseLike } from "../support/base-like/base-like.ts";
import { BASE, FREE_PLAN, HALT_MINUTES, POOL_ERRORS } from "../support/base-like/profiles.ts";
import { forFile } from "../support/for-file.ts";

describe("chain of the Base stand-in", async () => {
  // The stand-in for Base that the journeys use must behave like Base.

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

  /** Signs a transfer of zero with the next nonce, unless `fields` overrides it. */
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
    test("Blocks are two seconds apart, safe is 30 behind, and finalized, whose state is readable, is 450 behind", async () => {
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

    test("While halted, the chain makes no block although the clock runs, and on resuming it catches up", async () => {
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

  describe("transaction pool", () => {
    test("The pool rejects transactions with a node's messages", async () => {
      base.pool.treat({ refusedWith: POOL_ERRORS.full });
      await expect(send(await signed({ nonce: 0 }))).rejects.toThrow(/txpool is full/);
      await send(await signed({ nonce: 0 }));
      await expect(send(await signed({ nonce: 0 }))).rejects.toThrow(/nonce too low/i);
      const early = await signed({ nonce: 2 });
      await send(early);
      await expect(send(early)).rejects.toThrow(/already known/);
      base.pool.forget();
    });

    test("A replacement needs ten percent more of both fees", async () => {
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
});

describe("provider of the Base stand-in", async () => {
  // The stand-in for a provider, with the nodes behind its URL and its limits.

  const base = await forFile(startBaseLike({ profile: { ...BASE, backends: [{ lagMs: 0 }, { lagMs: 0 }] } }));
  const { chain } = base;
  const usdc = chain.network.usdc.address;
  const TRANSFER = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)");

  const headOf = async () => (await chain.client.getBlock()).number;

  async function ask(body: unknown): Promise<Response> {
    return fetch(base.url, { method: "POST", body: JSON.stringify(body) });
  }
  const call = (id: number, method: string, ...params: unknown[]) => ({ jsonrpc: "2.0", id, method, params });

  describe("several backends behind one URL", () => {
    /** Sends 5 units to a new account. */
    const transfer = async () => {
      const receiver = privateKeyToAccount(generatePrivateKey()).address;
      const data = encodeFunctionData({ abi: USDC_ABI, functionName: "transfer", args: [receiver, 5n] });
      const wallet = createWalletClient({ account: devAccount(3), transport: http(chain.rpcUrl) });
      const hash = await wallet.sendTransaction({ chain: null, to: usdc, data });
      return { receiver, ...(await chain.client.waitForTransactionReceipt({ hash })) };
    };

    /** The responses of both nodes in one batch. */
    const both = async (method: string, ...params: unknown[]) => {
      const twice = [call(1, method, ...params), call(2, method, ...params)];
      return (await (await ask(twice)).json()) as { result?: unknown; error?: { message: string } }[];
    };
    const results = async (...asked: Parameters<typeof both>) =>
      new Set((await both(...asked)).map(({ result }) => result));

    test("A stuck backend lacks the block, its state, logs, and receipts, so items of one batch differ", async () => {
      const head = await headOf();
      base.backend(1, { lastBlock: head });
      try {
        const { receiver, transactionHash, blockNumber, blockHash } = await transfer();
        const at = `0x${blockNumber.toString(16)}`;
        const answered = async (...asked: Parameters<typeof both>) =>
          (await both(...asked))
            .map(({ result, error }) => error?.message ?? (isNothing(result) ? "nothing" : "it"))
            .sort();
        const isNothing = (result: unknown) => result === null || (Array.isArray(result) && result.length === 0);
        for (const [method, ...params] of [
          ["eth_getTransactionReceipt", transactionHash],
          ["eth_getBlockByNumber", at, false],
          ["eth_getBlockByHash", blockHash, false],
          ["eth_getLogs", { address: usdc, fromBlock: at, toBlock: at }],
        ] as const)
          expect(await answered(method, ...params)).toEqual(["it", "nothing"]);
        expect(await answered("eth_getBalance", receiver, at)).toEqual(["header not found", "it"]);
        expect(await answered("eth_getLogs", { address: usdc, blockHash })).toEqual(["it", "unknown block"]);
        expect(await results("eth_blockNumber")).toEqual(new Set([at, `0x${head.toString(16)}`]));
        const data = encodeFunctionData({ abi: USDC_ABI, functionName: "balanceOf", args: [receiver] });
        for (const latest of [["latest"], []])
          expect((await results("eth_call", { to: usdc, data }, ...latest)).size).toBe(2);
        const seen = (await both("eth_getTransactionByHash", transactionHash)).map(({ result }) => result);
        expect(new Set(seen.map((one) => (one as { blockNumber: unknown }).blockNumber))).toEqual(new Set([at, null]));
      } finally {
        base.backend(1, { lastBlock: null });
      }
    });
  });

  describe("limits of a provider", () => {
    test("eth_getLogs over more than 10,000 blocks is rejected with the provider's message", async () => {
      const head = await headOf();
      const logs = { address: usdc, fromBlock: "0x0", toBlock: `0x${(head + 10_000n).toString(16)}` };
      const single = await ask(call(7, "eth_getLogs", logs));
      expect([single.status, await single.json()]).toMatchObject([413, { id: 7, error: { code: -32614 } }]);
      const [batched] = (await (await ask([call(1, "eth_getLogs", logs), call(2, "eth_chainId")])).json()) as object[];
      expect(batched).toMatchObject({ id: 1, error: { message: "eth_getLogs is limited to a 10,000 range" } });
    });

    test("A free plan allows 10 blocks per request, 3 calls per batch, and a limited number of logs", async () => {
      const free = await startBaseLike({ profile: { ...FREE_PLAN, logs: { ...FREE_PLAN.logs, maxLogs: 1 } } });
      try {
        const cheap = createPublicClient({ transport: http(free.url, { retryCount: 0 }) });
        const head = await cheap.getBlockNumber();
        const logs = (blocks: bigint) => cheap.getLogs({ fromBlock: head - blocks + 1n, toBlock: head });
        expect(await logs(10n)).toEqual([]);
        await expect(logs(11n)).rejects.toThrow(/up to a 10 block range/);
        await free.chain.fund(devAccount(4).address, 1n);
        await free.caughtUp();
        const later = { fromBlock: head + 1n, address: usdc };
        expect(await cheap.getLogs({ ...later, event: TRANSFER })).toHaveLength(1);
        await expect(cheap.getLogs(later)).rejects.toThrow(/more than 10000 results/);
        const calls = Array.from({ length: 4 }, (_, id) => call(id, "eth_chainId"));
        const post = (body: unknown) => fetch(free.url, { method: "POST", body: JSON.stringify(body) });
        const refused = await post(calls);
        expect([refused.status, await refused.json()]).toMatchObject([500, { error: { code: 31 } }]);
        expect(await (await post(calls.slice(1))).json()).toHaveLength(3);
      } finally {
        await free.stop();
      }
    });
  });
});
