import { type Address, encodeFunctionData, parseAbi } from "viem";
import { expect, test } from "vitest";
import { createChain } from "../../../api/adapters/chain/chain-reader.ts";
import { lookFor } from "../../../api/payments/look.ts";
import type { Expected } from "../../../api/payments/scheme.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { standingStillAt, startFaultyNode } from "../../support/chain/faulty-node.ts";
import { forFile } from "../../support/for-file.ts";
import { broadcast, submit } from "../../support/payments/on-chain.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { RELAYER } from "../../support/service/service.ts";

/** What a look makes of a transaction of ours that was mined without success. */

const ERC20 = parseAbi(["function transfer(address to, uint256 value) returns (bool)"]);

const chain = await forFile(startTestChain({ slotsInAnEpoch: 3 }));
const node = await forFile(startFaultyNode(chain));
const reader = createChain(chain.network.id, { rpcUrl: node.url, logBlockRange: 9_000 });
await chain.mine(20);

const expectedOf = ({ authorization }: Signed, fromBlock: bigint): Expected => {
  const { from, to: payTo, nonce, value, validAfter, validBefore } = authorization;
  const payer = from.toLowerCase() as Address;
  return { payer, payTo, nonce, value, validAfter, validBefore, fromBlock: Number(fromBlock) };
};

/** Ours, mined whether it succeeds or not. */
const mined = async (signed: Signed) => {
  const { status, transactionHash } = await submit(chain, signed, { gas: 200_000n });
  expect(status).toBe("reverted");
  return transactionHash;
};

test("a transaction that failed while the nonce stays unused is one that was mined without settling", async () => {
  const payer = await newPayer(chain);
  const signed = await signPayment(payer);
  const expected = expectedOf(signed, await chain.client.getBlockNumber());
  await chain.setBalance(payer.address, 10n ** 18n);
  const data = encodeFunctionData({ abi: ERC20, functionName: "transfer", args: [RELAYER.address, 10_000_000n] });
  const { usdc } = chain.network;
  const away = await chain.client.sendTransaction({ account: payer, to: usdc.address, data, gas: 100_000n });
  await chain.client.waitForTransactionReceipt({ hash: away });
  const transaction = await mined(signed);
  expect(await lookFor(reader, expected, async () => transaction)).toEqual({ nonce: "reverted", transaction });
  expect(await lookFor(reader, expected, async () => null)).toEqual({ nonce: "unused" });
});

test("one that failed because a stranger's copy was faster is none, however far a node lags", async () => {
  const signed = await signPayment(await newPayer(chain));
  const before = await chain.client.getBlockNumber();
  const expected = expectedOf(signed, before);
  await broadcast(chain, signed);
  const transaction = await mined(signed);
  const failed = async () => transaction;
  node.become(standingStillAt(before));
  await expect(lookFor(reader, expected, failed)).rejects.toThrow();
  // Nodes behind one address: this one has heard of our transaction, the others of nothing.
  const lagging = standingStillAt(before);
  node.become((call, pass) => (call.method === "eth_getTransactionReceipt" ? pass(call) : lagging(call, pass)));
  await expect(lookFor(reader, expected, failed)).rejects.toThrow();
  node.become(null);
  expect(await lookFor(reader, expected, failed)).toMatchObject({ nonce: "paid" });
});
