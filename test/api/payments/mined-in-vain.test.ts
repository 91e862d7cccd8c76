import { type Address, encodeFunctionData, type Hex, pad, parseAbi } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { lookFor } from "../../../api/payments/commands.ts";
import { createChain } from "../../../api/platform/chain/chain.ts";
import type { Expected } from "../../../api/platform/chain/view.ts";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { startFaultyNode, stoppedAt } from "../../support/chain/nodes.ts";
import { forFile } from "../../support/for-file.ts";
import { expectPaymentRequired, expectProblem } from "../../support/payments/expectations.ts";
import { broadcast, chargedOnce, nothingCharged, submit } from "../../support/payments/on-chain.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { burningWallet, FLAG, gasBelow, originIs, SIGNS, slowWallet } from "../../support/payments/wallets.ts";
import { freshDatabase } from "../../support/service/database.ts";
import { ALONE, RELAYER, startService } from "../../support/service/service.ts";

describe("The gas of one settlement", async () => {
  const MOST_GAS = 350_000n;
  const soon = { timeout: 10_000, interval: 50 };

  const chain = await forFile(startTestChain());
  const database = await freshDatabase();
  const one = await forFile(startService({ chain, database }));
  const { signingKey, sealingKey } = one.config;
  const other = await forFile(startService({ chain, database, config: { signingKey, sealingKey } }));
  const buy = ({ url }: { readonly url: string }, signed: Signed) => post(`${url}/test/basic`, v2(signed));

  let before: number;
  const sent = async () => (await chain.client.getTransactionCount({ address: RELAYER.address })) - before;

  beforeEach(async () => {
    before = await chain.client.getTransactionCount({ address: RELAYER.address });
  });

  /** Returns the gas of all the relayer's transactions in this test. */
  async function gasSpent(): Promise<bigint> {
    const { rows } = await withClient(database.ownerUrl, (client) =>
      client.query<{ hash: Buffer }>("SELECT unnest(hashes) AS hash FROM relay WHERE nonce >= $1", [before]),
    );
    const receipts = await Promise.all(
      rows.map(({ hash }) =>
        chain.client.getTransactionReceipt({ hash: `0x${hash.toString("hex")}` }).catch(() => ({ gasUsed: 0n })),
      ),
    );
    return receipts.reduce((sum, { gasUsed }) => sum + gasUsed, 0n);
  }

  async function contract(code: Hex) {
    const account = await newPayer(chain);
    await chain.client.setCode({ address: account.address, bytecode: code });
    return account;
  }
  /** Creates an account that delegates to a contract with this code (EIP-7702). */
  async function delegating(code: Hex) {
    const { address: wallet } = await newPayer(chain, 0n);
    await chain.client.setCode({ address: wallet, bytecode: code });
    return contract(`0xef0100${wallet.slice(2)}`);
  }

  test.each([
    ["the gas price", SIGNS["transactions have a gas price, simulations none"], contract],
    ["the origin", SIGNS["transactions have an origin, simulations none"], delegating],
    ["our address", originIs(RELAYER.address), contract],
    ["a gas limit above ours", gasBelow(1_000_000), contract],
  ])("A payer whose code detects simulations by %s is refused, and no gas is spent", async (_, sign, deploy) => {
    const payer = await deploy(burningWallet(sign));
    const why = expectPaymentRequired(await buy(one, await signPayment(payer)));
    expect(why).toMatch(/rejects the signature|more than 350,000 gas/);
    expect(await sent()).toBe(0);
  });

  /** Pays with a wallet whose code changes in the payment's block only, so that the payment is mined and reverts. */
  async function payInVain(deploy = contract) {
    const payer = await deploy(burningWallet(SIGNS["a flag in its storage is set in between"]));
    const signed = await signPayment(payer);
    await chain.client.setAutomine(false);
    const answering = buy(one, signed);
    await expect.poll(async () => (await chain.client.getTxpoolStatus()).pending, soon).toBe(1);
    await chain.client.setStorageAt({ address: payer.address, ...FLAG });
    await chain.mine();
    await chain.client.setAutomine(true);
    const answer = await answering;
    await chain.client.setStorageAt({ address: payer.address, index: FLAG.index, value: pad("0x0") });
    return { payer, signed, answer };
  }

  test("A payer whose code changes before it is mined costs at most 350,000 gas once, and the same header is never submitted again", async () => {
    const { payer, signed, answer } = await payInVain(delegating);
    const answers = [answer];
    for (const service of [one, other, one]) answers.push(await buy(service, signed));
    answers.push(...(await Promise.all([one, other, other].map((service) => buy(service, signed)))));
    for (const answer of answers) expect(expectPaymentRequired(answer)).toMatch(/mined and reverted/);
    expect(await sent()).toBe(1);
    const spent = await gasSpent();
    expect(spent).toBeLessThanOrEqual(MOST_GAS);
    expect(spent).toBeGreaterThan(50_000n);
    await nothingCharged(chain, payer);
  });

  test("A payment that was mined and reverted gets its result if its payer later broadcasts the authorization", async () => {
    const { signed, answer } = await payInVain();
    expectPaymentRequired(answer);
    await broadcast(chain, signed);
    expect((await buy(other, signed)).status).toBe(200);
    await chargedOnce(chain, signed);
    expect(await sent()).toBe(1);
  });

  test("A wallet that needs more gas than the limit is refused with the reason", async () => {
    const payer = await contract(slowWallet(8_000));
    const why = expectPaymentRequired(await buy(one, await signPayment(payer)));
    expect(why).toMatch(/would take more than 350,000 gas/);
    expect(await sent()).toBe(0);
  });

  test("A wallet that needs less gas than the limit can pay", async () => {
    const payer = await contract(slowWallet(2_500));
    const signed = await signPayment(payer);
    expect((await buy(one, signed)).status).toBe(200);
    await chargedOnce(chain, signed);
    const spent = await gasSpent();
    expect(spent).toBeGreaterThan(200_000n);
    expect(spent).toBeLessThanOrEqual(MOST_GAS);
  });
});

describe("A settlement that fails", async () => {
  /** How a lookup interprets a transaction of ours that was mined and reverted. */

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

  /** Submits a transaction of ours that is mined and reverts. */
  const mined = async (signed: Signed) => {
    const { status, transactionHash } = await submit(chain, signed, { gas: 200_000n });
    expect(status).toBe("reverted");
    return transactionHash;
  };

  test("A reverted transaction whose nonce is unused is reported as reverted", async () => {
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

  test("A transaction that reverted because a stranger's copy was mined first is never reported as reverted, even by a lagging node", async () => {
    const signed = await signPayment(await newPayer(chain));
    const before = await chain.client.getBlockNumber();
    const expected = expectedOf(signed, before);
    await broadcast(chain, signed);
    const transaction = await mined(signed);
    const failed = async () => transaction;
    node.become(stoppedAt(before));
    await expect(lookFor(reader, expected, failed)).rejects.toThrow();
    // Several nodes share one URL. Only the one that returns receipts knows our transaction.
    const lagging = stoppedAt(before);
    node.become((call, pass) => (call.method === "eth_getTransactionReceipt" ? pass(call) : lagging(call, pass)));
    await expect(lookFor(reader, expected, failed)).rejects.toThrow();
    node.become(null);
    expect(await lookFor(reader, expected, failed)).toMatchObject({ nonce: "paid" });
  });

  describe("Three payments that are mined without settling", () => {
    const rpcUrls = eachNetwork(() => node.url);
    const services = {
      "in separate transactions": ALONE,
      "with the batch's fixed gas limit": {},
    };
    const head = async () => (await chain.client.getBlock()).timestamp;

    /** Runs `act` right before the next transaction reaches the node. */
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
      // Without jobs, no job sees USDC while a test has it paused.
      const service = await forFile(startService({ chain, config: { rpcUrls, ...more }, jobs: false }));
      const pay = (signed: Signed) => post(`${service.url}/test/basic`, v2(signed));
      const sign = async (payer: Awaited<ReturnType<typeof newPayer>>) =>
        signPayment(payer, { validBefore: (await head()) + 90n });
      const failing = async (signed: Signed, act: () => Promise<unknown>) => {
        beforeBroadcast(act);
        const answer = await pay(signed);
        node.become(null);
        expect(expectPaymentRequired(answer)).toMatch(/mined and reverted/);
      };

      test("Failures in a block at validBefore do not count against the payer", async () => {
        const payer = await newPayer(chain);
        for (let count = 0; count < 3; count++) {
          const signed = await sign(payer);
          const { validBefore: timestamp } = signed.authorization;
          await failing(signed, () => chain.client.setNextBlockTimestamp({ timestamp }));
        }
        expect((await pay(await sign(payer))).status).toBe(200);
      });

      test("Failures while USDC is paused do not count against an account or a contract", async () => {
        const wallet = await newPayer(chain);
        await chain.client.setCode({ address: wallet.address, bytecode: burningWallet("0x5f") });
        for (const payer of [await newPayer(chain), wallet]) {
          for (let count = 0; count < 3; count++) {
            await failing(await sign(payer), () => chain.pause());
            await chain.unpause();
          }
          expect((await pay(await sign(payer))).status).toBe(200);
        }
      });

      test("Failures before validBefore count against a payer who moved the balance away", async () => {
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
});
