import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { EXAM_PRICE } from "../../../api/sellers/products.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { away, startFaultyNode } from "../../support/chain/nodes.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { submit } from "../../support/payments/on-chain.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { buyExam, EXAM_KEY, ended, lineFor, outcomesOf } from "../../support/sellers/buying.ts";
import { openShop, type Shop } from "../../support/sellers/shop.ts";
import { connectOwner } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain({ mining: { everySeconds: 1 } }));
const node = await forFile(startFaultyNode(chain));
const examiner = privateKeyToAccount(EXAM_KEY);
await chain.fund(examiner.address, 20_000_000n);
const shops = [await forFile(openShop(chain)), await forFile(openShop(chain)), await forFile(openShop(chain))] as const;
let minutes = 0;
const service = await forFile(
  startService({
    chain,
    now: () => new Date(Date.now() + minutes * 60_000),
    config: {
      rpcUrls: { "eip155:8453": node.url, "eip155:84532": node.url },
      exams: { privateKey: EXAM_KEY, daily: 50_000_000n },
      arbiterAllowedOrigins: shops.map(({ url }) => url),
    },
  }),
);
const owner = await forFile(connectOwner(service.database));
const stopped = (id: unknown) =>
  service.logged.some((line) => line.includes("did not come to its end") && line.includes(String(id)));

async function buy(shop: Shop, payer: Awaited<ReturnType<typeof newPayer>>): Promise<unknown> {
  const url = `${shop.url}/haiku`;
  shop.place(await lineFor(service.url, url, payer));
  const { answer } = await buyExam(service.url, payer, { url });
  expect(answer.status, answer.text).toBe(200);
  return answer.body.id;
}

/** From the first payment as quoted on, which comes after five that are forged. */
function atThePurchase(shop: Shop, work: () => "cut" | Promise<void>): void {
  let paid = 0;
  shop.before(({ isPaid }) => (isPaid && ++paid === 6 ? work() : undefined));
}

test("a request that our own network lost fails no seller, and one that the seller lost does", async () => {
  const [, ours, theirs] = shops;
  const payer = await newPayer(chain, 4_000_000n);
  atThePurchase(ours, () => {
    node.become(away);
    setTimeout(() => node.become(null), 3_000);
    return "cut";
  });
  const id = await buy(ours, payer);
  await eventually(() => stopped(id), true);
  atThePurchase(theirs, () => "cut");
  const record = await ended(service.url, await buy(theirs, payer));
  expect(await ended(service.url, id)).toMatchObject({ status: "complete", level: "full", runs: 2 });
  expect(record).toMatchObject({ status: "complete", level: null, runs: 1 });
  expect(outcomesOf(record).purchase).toBe("fail");
});

test("an exam that our own account keeps from being held says nothing of the seller, and is paid back once", async () => {
  const [shop] = shops;
  const payer = await newPayer(chain, 2_000_000n);
  atThePurchase(shop, async () => {
    const value = await chain.usdcBalance(examiner.address);
    await submit(chain, await signPayment(examiner, { value }));
  });
  const id = await buy(shop, payer);
  expect(await chain.usdcBalance(payer.address)).toBe(2_000_000n - EXAM_PRICE);
  await eventually(() => stopped(id), true);
  minutes = 31;
  const record = await ended(service.url, id);
  expect(record).toMatchObject({ status: "interrupted", level: null, certified: false, checks: [], valid_until: null });
  expect(record).toMatchObject({ note: expect.stringMatching(/buyer gets back what it cost/), refund: null });
  await chain.fund(examiner.address, 5_000_000n);
  const atOnce = () => owner.query("UPDATE seller_exam_work SET due_at = '-infinity'");
  await eventually(() => atOnce().then(() => chain.usdcBalance(payer.address)), 2_000_000n);
  // It is asked for until it is final, and sent once.
  await eventually(() => atOnce().then(({ rowCount }) => rowCount), 0);
  expect(await chain.usdcBalance(examiner.address)).toBe(5_000_000n - EXAM_PRICE);
  expect(await ended(service.url, id)).toMatchObject({ refund: { transaction: expect.stringMatching(/^0x\w{64}$/) } });
});
