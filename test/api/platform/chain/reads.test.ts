import { createPublicClient, type Hex, http, numberToHex } from "viem";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createChain } from "../../../../api/platform/chain/chain.ts";
import { type Call, readAtBlock } from "../../../../api/platform/chain/read-at-block.ts";
import { isTransport } from "../../../../api/platform/chain/rpc.ts";
import { usdcCalls } from "../../../../api/platform/chain/usdc.ts";
import { createAuthorizationReader } from "../../../../api/settlement-status/chain.ts";
import { startTestChain } from "../../../support/chain/chain.ts";
import { startFaultyNode } from "../../../support/chain/nodes.ts";
import { type Call as NodeCall, type Reply, refuse, replyTo } from "../../../support/chain/rpc.ts";
import { forFile } from "../../../support/for-file.ts";
import { broadcast } from "../../../support/payments/on-chain.ts";
import { newPayer, signPayment } from "../../../support/payments/signing.ts";
import { slowWallet } from "../../../support/payments/wallets.ts";

describe("Reads at one block", async () => {
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

  test("All results come from the requested block, before and after a settlement", async () => {
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

  test("A result from a block other than the requested one is rejected", async () => {
    node.become((call, pass) => {
      const [request] = (call.params ?? []) as readonly unknown[];
      return pass(call.method === "eth_call" ? { ...call, params: [request, "latest"] } : call);
    });
    const read = readAtBlock(client, { calls: [isUsed(from, nonce)], blockNumber: settled - 1n });
    await expect(read).rejects.toThrow(`the request was for block ${settled - 1n}, and the node answered at block`);
  });

  test("A reverting call or a call to an account without code throws an error that does not blame the node", async () => {
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

describe("Old states", async () => {
  // Reads of old blocks from a real node: the block at a given time, and nonces used by then.

  const chain = await forFile(startTestChain());
  const source = createChain("eip155:8453", { rpcUrl: chain.rpcUrl, logBlockRange: 1_000 });
  const reader = createAuthorizationReader(source, chain.network);

  const blockAt = async (blockNumber: bigint) => {
    const { number, hash, timestamp: time } = await chain.client.getBlock({ blockNumber });
    return { number: Number(number), hash, time };
  };

  test("A nonce is unused before the block of its use and used from that block on", async () => {
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

  test("The first block since a time is found, or a later block if the chain halted in between", async () => {
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

describe("Signatures of contracts", async () => {
  const chain = await forFile(startTestChain());
  const reader = createChain("eip155:8453", { rpcUrl: chain.rpcUrl, logBlockRange: 1_000 });
  const digest: Hex = `0x${"12".repeat(32)}`;

  async function wallet(number: number, rounds: number): Promise<Hex> {
    const address = numberToHex(0xc0de00 + number, { size: 20 });
    await chain.client.setCode({ address, bytecode: slowWallet(rounds) });
    return address;
  }

  describe("Signatures at a past block", async () => {
    const faulty = await forFile(startFaultyNode(chain));
    const asked = createChain("eip155:8453", { rpcUrl: faulty.url, logBlockRange: 1_000 });
    const payer = await wallet(4, 1);
    await chain.mine(1);
    const block = Number(await chain.client.getBlockNumber());
    const isSigned = () => asked.verifyContractSignature({ payer, digest, signature: "0x01" }, null, { block });
    const answers = (reply: (call: NodeCall, seen: number) => Reply | null) => {
      let seen = 0;
      faulty.become(async (call, pass) =>
        call.method === "eth_call" ? (reply(call, seen++) ?? pass(call)) : pass(call),
      );
    };
    afterEach(() => faulty.become(null));

    test.each([
      ["a revert", 3, "execution reverted"],
      ["geth's out of gas", -32_000, "out of gas"],
      ["geth's invalid instruction", -32_000, "invalid opcode: INVALID"],
      ["reth's stack fault", -32_603, "EVM error: StackUnderflow"],
    ])("The signature is invalid if the node returns %s", async (_, code, message) => {
      answers((call) => refuse(call, code, message));
      expect(await isSigned()).toBe(false);
    });

    test.each([
      ["an internal error", -32_603, "Internal error"],
      ["a missing state", -32_000, "missing trie node"],
    ])("The check throws if the node returns %s", async (_, code, message) => {
      answers((call) => refuse(call, code, message));
      await expect(isSigned()).rejects.toThrow();
    });

    test("A null from one of two readings does not make a signature invalid", async () => {
      answers((call, seen) => (seen === 0 ? replyTo(call, null) : null));
      expect(await isSigned()).toBe(true);
    });
  });

  test.each([
    ["300,000", 5_000, true],
    ["700,000", 12_000, false],
  ])("A signature whose check needs about %s gas (%i rounds) is valid: %s", async (_, rounds, isSigned) => {
    const payer = await wallet(rounds, rounds);
    expect(await reader.verifyContractSignature({ payer, digest, signature: "0x01" }, null)).toBe(isSigned);
  });
});
