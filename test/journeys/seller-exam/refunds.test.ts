import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { EXAM_PRICE } from "../../../api/seller-exam/products.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { submit } from "../../support/payments/on-chain.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { openShop } from "../../support/seller/shop.ts";
import { buyExam, EXAM_KEY, ended, lineFor } from "../../support/seller-exam/buying.ts";
import { connectOwner } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain({ mining: { everySeconds: 1 } }));
const examiner = privateKeyToAccount(EXAM_KEY);
await chain.fund(examiner.address, 20_000_000n);
const shop = await forFile(openShop(chain));
let minutes = 0;
const service = await forFile(
  startService({
    chain,
    now: () => new Date(Date.now() + minutes * 60_000),
    config: { exams: { privateKey: EXAM_KEY, daily: 50_000_000n }, arbiterAllowedOrigins: [shop.url] },
  }),
);
const owner = await forFile(connectOwner(service.database));

test("an exam that our own account keeps from being held says nothing of the seller, and is paid back once", async () => {
  const url = `${shop.url}/haiku`;
  shop.place(await lineFor(service.url, url));
  const payer = await newPayer(chain, 2_000_000n);
  let paid = 0;
  const empty = async () => {
    const value = await chain.usdcBalance(examiner.address);
    await submit(chain, await signPayment(examiner, { value }));
    minutes = 31;
  };
  shop.before(({ isPaid }) => (isPaid && ++paid === 6 ? empty() : undefined));
  const { answer } = await buyExam(service.url, payer, { url });
  expect(answer.status, answer.text).toBe(200);
  expect(await chain.usdcBalance(payer.address)).toBe(2_000_000n - EXAM_PRICE);
  const record = await ended(service.url, answer.body.id);
  expect(record).toMatchObject({ status: "interrupted", level: null, certified: false, checks: [], valid_until: null });
  expect(record.note).toMatch(/buyer gets back what it cost/);
  await chain.fund(examiner.address, 5_000_000n);
  const atOnce = () => owner.query("UPDATE seller_exam_work SET due_at = '-infinity'");
  await eventually(() => atOnce().then(() => chain.usdcBalance(payer.address)), 2_000_000n);
  // It is asked for until the chain shows it, and sent once.
  await eventually(() => atOnce().then(({ rowCount }) => rowCount), 0);
  expect(await chain.usdcBalance(examiner.address)).toBe(5_000_000n - EXAM_PRICE);
});
