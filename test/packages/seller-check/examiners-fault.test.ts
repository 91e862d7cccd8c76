import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { createChain } from "../../../api/platform/chain/chain.ts";
import { createExamLedger } from "../../../api/sellers/chain.ts";
import { chainLedger, ExaminersFault } from "../../../packages/seller-check/src/index.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { away, standingStillAt, startFaultyNode } from "../../support/chain/nodes.ts";
import { forFile } from "../../support/for-file.ts";
import { submit } from "../../support/payments/on-chain.ts";
import { signPayment } from "../../support/payments/signing.ts";
import { holdExam, untrue } from "../../support/sellers/held-exam.ts";
import { openShop, type Shop } from "../../support/sellers/shop.ts";

// What is no doing of the seller ends an exam without a word about it.

const chain = await forFile(startTestChain());
const node = await forFile(startFaultyNode(chain));
const ledger = createExamLedger(createChain("eip155:8453", { rpcUrl: node.url, logBlockRange: 1_000 }));

const failure = (exam: Promise<unknown>): Promise<unknown> =>
  exam.then(
    () => "the exam was held",
    (error: unknown) => error,
  );

/** Does something once, before the shop answers its first payment as quoted: the five before it are forged. */
function atThePurchase(shop: Shop, work: () => Promise<void> | void): void {
  let paid = 0;
  shop.before(({ isPaid }) => (isPaid && ++paid === 6 ? work() : undefined));
}

test("a node that stays behind while the seller settles says nothing about the seller", async () => {
  const shop = await forFile(openShop(chain));
  const head = await chain.client.getBlockNumber();
  // Not before the payer has its money.
  atThePurchase(shop, async () => node.become(standingStillAt((await chain.client.getBlockNumber()) || head)));
  const failed = await failure(holdExam(chain, { resource: { url: `${shop.url}/haiku` }, ledger }));
  node.become(null);
  expect(failed).toBeInstanceOf(ExaminersFault);
  expect(String(failed)).toMatch(/does not show what became of/);
});

test("a node that goes away in the middle says nothing about the seller", async () => {
  const shop = await forFile(openShop(chain));
  atThePurchase(shop, () => node.become(away));
  const failed = await failure(holdExam(chain, { resource: { url: `${shop.url}/haiku` }, ledger }));
  node.become(null);
  expect(failed).toBeInstanceOf(ExaminersFault);
});

test("behind a node that lags, nothing is signed that has expired when it is presented", async () => {
  const shop = await forFile(openShop(chain));
  const local = await chainLedger(chain.rpcUrl);
  const late = { ...local, now: async () => (await local.now()) - 120 };
  expect(untrue(await holdExam(chain, { resource: { url: `${shop.url}/haiku` }, ledger: late }))).toEqual([]);
});

test("a payer with one unit too little is told so, and the seller is asked for nothing but its quote", async () => {
  const shop = await forFile(openShop(chain));
  const payer = privateKeyToAccount(generatePrivateKey());
  await chain.fund(payer.address, 3_000n);
  const failed = await failure(holdExam(chain, { resource: { url: `${shop.url}/haiku` }, payer }));
  expect(String(failed)).toMatch(/has 0\.003 USDC \(token 0x\w+\), and an exam needs 0\.003001 USDC/);
  expect(shop.requests()).toBe(4);
  await chain.fund(payer.address, 1n);
  expect(untrue(await holdExam(chain, { resource: { url: `${shop.url}/haiku` }, payer }))).toEqual([]);
});

test("a token that is paused, or has the payer on its blacklist, fails no seller", async () => {
  const shop = await forFile(openShop(chain));
  const payer = privateKeyToAccount(generatePrivateKey());
  await chain.fund(payer.address, 1_000_000n);
  const fails = async (pattern: RegExp) => {
    const failed = await failure(holdExam(chain, { resource: { url: `${shop.url}/haiku` }, payer }));
    expect(failed).toBeInstanceOf(ExaminersFault);
    expect(String(failed)).toMatch(pattern);
  };
  const asked = shop.requests();
  await chain.pause();
  await fails(/is paused/);
  expect(shop.requests() - asked).toBe(4);
  await chain.unpause();
  atThePurchase(shop, chain.pause);
  await fails(/is paused/);
  await chain.unpause();
  atThePurchase(shop, () => chain.blacklist(payer.address));
  await fails(/has the account 0x\w+ on its blacklist/);
  shop.before(() => undefined);
  await fails(/has the account 0x\w+ on its blacklist/);
});

test("our node shows what bars payments like any other", async () => {
  const [payer, payee] = [privateKeyToAccount(generatePrivateKey()), privateKeyToAccount(generatePrivateKey())];
  const asked = { asset: chain.network.usdc.address, from: payer.address, payee: payee.address, nonces: [] };
  const shown = async () => {
    const local = await chainLedger(chain.rpcUrl);
    const [one, other] = [await ledger.read(asked), await local.read(asked)];
    expect(one.bars).toEqual(other.bars);
    return [...one.bars];
  };
  expect(await shown()).toEqual([]);
  await chain.blacklist(payee.address);
  expect(await shown()).toEqual(["payee"]);
  await chain.pause();
  expect(await shown()).toEqual(["paused", "payee"]);
  await chain.unpause();
});

test("a payer whose money goes elsewhere during the exam fails no seller", async () => {
  const shop = await forFile(openShop(chain));
  const payer = privateKeyToAccount(generatePrivateKey());
  await chain.fund(payer.address, 3_001n);
  atThePurchase(shop, async () => void (await submit(chain, await signPayment(payer, { value: 3_001n }))));
  const failed = await failure(holdExam(chain, { resource: { url: `${shop.url}/haiku` }, payer }));
  expect(failed).toBeInstanceOf(ExaminersFault);
  expect(String(failed)).toMatch(/ran short of money/);
});

test("a seller that charges and serves nothing fails, although the payer's money is gone at the end", async () => {
  const shop = await forFile(openShop(chain, "charges and fails"));
  const payer = privateKeyToAccount(generatePrivateKey());
  await chain.fund(payer.address, 3_001n);
  const report = await holdExam(chain, { resource: { url: `${shop.url}/haiku` }, payer });
  expect(untrue(report).join()).toContain("Nothing is charged for a refused payment");
});
