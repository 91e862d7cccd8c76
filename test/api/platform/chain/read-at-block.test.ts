import { createPublicClient, http } from "viem";
import { beforeEach, expect, test } from "vitest";
import { type Call, readAtBlock } from "../../../../api/platform/chain/read-at-block.ts";
import { isTransport } from "../../../../api/platform/chain/rpc.ts";
import { usdcCalls } from "../../../../api/platform/chain/usdc.ts";
import { startTestChain } from "../../../support/chain/chain.ts";
import { startFaultyNode } from "../../../support/chain/nodes.ts";
import { forFile } from "../../../support/for-file.ts";
import { broadcast } from "../../../support/payments/on-chain.ts";
import { newPayer, signPayment } from "../../../support/payments/signing.ts";

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
