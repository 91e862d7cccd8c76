import { type Address, encodeFunctionData, parseAbi } from "viem";
import { describe, expect, test } from "vitest";
import { lookFor } from "../../../api/payments/commands.ts";
import { createChain } from "../../../api/platform/chain/chain.ts";
import type { Expected } from "../../../api/platform/chain/view.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { standingStillAt, startFaultyNode } from "../../support/chain/nodes.ts";
import { forFile } from "../../support/for-file.ts";
import { expectPaymentRequired, expectProblem } from "../../support/payments/expectations.ts";
import { broadcast, submit } from "../../support/payments/on-chain.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { burningOn } from "../../support/payments/wallets.ts";
import { ALONE, RELAYER, startService } from "../../support/service/service.ts";

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

describe("three payments that are mined without settling", () => {
  const rpcUrls = { "eip155:8453": node.url, "eip155:84532": node.url };
  const services = {
    "in transactions of their own": ALONE,
    "by the fixed gas limit of the batch": {},
  };
  const head = async () => (await chain.client.getBlock()).timestamp;

  /** Runs right before the next transaction reaches the node. */
  const beforeBroadcast = (act: () => Promise<unknown>) => {
    let isDone = false;
    node.become(async (call, pass) => {
      if (call.method === "eth_sendRawTransaction" && !isDone) {
        isDone = true;
        await act();
      }
      return pass(call);
    });
  };

  describe.each(Object.entries(services))("%s", async (_, more) => {
    const service = await forFile(startService({ chain, config: { rpcUrls, ...more } }));
    const pay = (signed: Signed) => post(`${service.url}/test/basic`, v2(signed));
    const sign = async (payer: Awaited<ReturnType<typeof newPayer>>) =>
      signPayment(payer, { validBefore: (await head()) + 90n });
    const failing = async (signed: Signed, act: () => Promise<unknown>) => {
      beforeBroadcast(act);
      const answer = await pay(signed);
      node.become(null);
      expect(expectPaymentRequired(answer)).toMatch(/mined and reverted/);
    };

    test("do not count against their payer where we mined them in a block at validBefore", async () => {
      const payer = await newPayer(chain);
      for (let count = 0; count < 3; count++) {
        const signed = await sign(payer);
        const { validBefore: timestamp } = signed.authorization;
        await failing(signed, () => chain.client.setNextBlockTimestamp({ timestamp }));
      }
      expect((await pay(await sign(payer))).status).toBe(200);
    });

    test("do not count against an account or a contract where USDC was paused", async () => {
      const wallet = await newPayer(chain);
      await chain.client.setCode({ address: wallet.address, bytecode: burningOn("0x5f") });
      for (const payer of [await newPayer(chain), wallet]) {
        for (let count = 0; count < 3; count++) {
          await failing(await sign(payer), () => chain.pause());
          await chain.unpause();
        }
        expect((await pay(await sign(payer))).status).toBe(200);
      }
    });

    test("count against a payer whose balance was gone in a block before validBefore", async () => {
      const payer = await newPayer(chain);
      const { usdc } = chain.network;
      await chain.setBalance(payer.address, 10n ** 18n);
      for (let count = 0; count < 3; count++) {
        const signed = await sign(payer);
        await failing(signed, async () => {
          const value = await chain.usdcBalance(payer.address);
          const data = encodeFunctionData({ abi: ERC20, functionName: "transfer", args: [RELAYER.address, value] });
          const hash = await chain.client.sendTransaction({ account: payer, to: usdc.address, data, gas: 100_000n });
          await chain.client.waitForTransactionReceipt({ hash });
          const { validBefore } = signed.authorization;
          await chain.client.setNextBlockTimestamp({ timestamp: validBefore - 1n });
        });
        await chain.fund(payer.address, 10_000_000n);
      }
      expectProblem(await pay(await sign(payer)), 429, "payer_refused");
    });
  });
});
