import { expect, test } from "vitest";
import { createChain } from "../../../../api/platform/chain/chain.ts";
import { createAuthorizationReader } from "../../../../api/settlement-status/chain.ts";
import { startTestChain } from "../../../support/chain/chain.ts";
import { forFile } from "../../../support/for-file.ts";
import { broadcast } from "../../../support/payments/on-chain.ts";
import { newPayer, signPayment } from "../../../support/payments/signing.ts";

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
