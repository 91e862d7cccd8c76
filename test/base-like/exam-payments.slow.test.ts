import { parseAbi } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test, vi } from "vitest";
import { createChain } from "../../api/platform/chain/chain.ts";
import { connect } from "../../api/platform/db/connection.ts";
import type { WebOrigin } from "../../api/platform/web/target.ts";
import { createFinalView } from "../../api/sellers/chain.ts";
import { createExamWatch } from "../../api/sellers/exam-work-store.ts";
import { watchPayments } from "../../api/sellers/payment-end.ts";
import { EXAM_PRICE } from "../../api/sellers/products.ts";
import { createPublishedExamReader } from "../../api/sellers/published/store.ts";
import { sellerVerification } from "../../api/sellers/published/verification.ts";
import { startBaseLike } from "../support/base-like/base-like.ts";
import { anotherTransaction, reorganize } from "../support/chain/blocks.ts";
import { eventually } from "../support/eventually.ts";
import { forFile } from "../support/for-file.ts";
import { broadcast } from "../support/payments/on-chain.ts";
import { post, send, v2 } from "../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../support/payments/signing.ts";
import { EXAM_KEY, lineFor } from "../support/sellers/buying.ts";
import { holdPaid } from "../support/sellers/samples.ts";
import { openShop } from "../support/sellers/shop.ts";
import { connectOwner, freshDatabase } from "../support/service/database.ts";
import { startService } from "../support/service/service.ts";

// The effect of a reorganization that removes a payment, on an exam and on a seller's certificate.

vi.setConfig({ testTimeout: 120_000 });

const [USED] = parseAbi(["event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)"]);
const FINAL_MINUTES = 16;
const VALID_MINUTES = 5;
const base = await forFile(startBaseLike());
const { chain } = base;
const database = await freshDatabase();
const pool = await forFile(connect(database.apiUrl));
const owner = await forFile(await connectOwner(database));
const reader = createChain("eip155:8453", { rpcUrl: base.url, logBlockRange: 9_000 });
const parts = { watched: createExamWatch(pool), finalView: createFinalView(reader) };
const exams = createPublishedExamReader(pool);

/** Checks all watched payments once, as the job does. Lagging nodes may not have a block yet. */
async function look(): Promise<void> {
  await owner.query("UPDATE seller_exam_watch SET due_at = '-infinity'");
  await watchPayments(parts).catch(() => undefined);
}
const waiting = async () => (await owner.query("SELECT FROM seller_exam_watch")).rowCount;
const stillWaiting = (count: number) =>
  eventually(async () => {
    await look();
    return waiting();
  }, count);
const reasons = async (origin: string) => {
  const site = { origin: origin as WebOrigin, prefix: "/" };
  return sellerVerification({ site, exams: await exams.ofSite(site, new Date()) }, "https://trust.test", new Date())
    .reasons;
};

const signs = async () =>
  signPayment(await newPayer(chain), { validBefore: base.unixNow() + BigInt(VALID_MINUTES * 60) });

/** Settles the payment in a separate block. */
async function examined(name: string, signed: Signed) {
  const origin = `https://${name}.example`;
  const receipt = await chain.client.getTransactionReceipt({ hash: await broadcast(chain, signed) });
  await holdPaid(pool, { origin, signed, transaction: receipt.transactionHash, block: Number(receipt.blockNumber) });
  return { origin };
}

test("A permanently removed payment reverses the certificate once that is final, but one that settles again does not", async () => {
  const [first, second, third] = [await signs(), await signs(), await signs()];
  const again = await anotherTransaction(chain, second);
  const kept = await examined("kept", first);
  const moved = await examined("moved", second);
  const lost = await examined("lost", third);
  await reorganize(chain, 2, [[again, 0]]);
  await base.caughtUp();
  await look();
  expect([await waiting(), await reasons(lost.origin)]).toEqual([3, []]);
  await base.pass(FINAL_MINUTES);
  await stillWaiting(1);
  // The payment is gone from a final block but could still be submitted again.
  expect(await reasons(lost.origin)).toEqual([]);
  await base.pass(VALID_MINUTES + 1);
  await stillWaiting(0);
  expect(await reasons(kept.origin)).toEqual([]);
  expect(await reasons(moved.origin)).toEqual([]);
  expect(await reasons(lost.origin)).toMatchObject([{ code: "pass_reversed" }]);
  const { rows } = await owner.query(
    `SELECT e.origin FROM log_pending p JOIN seller_exam e ON e.id = p.ref WHERE p.type = 'reversal'`,
  );
  expect(rows).toEqual([{ origin: lost.origin }]);
});

/** Removes an account's newest payment from the chain, with everything after it. */
async function takeBack(payer: `0x${string}`): Promise<void> {
  const { address } = chain.network.usdc;
  const paid = await chain.client.getLogs({ address, event: USED, args: { authorizer: payer }, fromBlock: 0n });
  const head = await chain.client.getBlockNumber();
  await reorganize(chain, Number(head - (paid.at(-1)?.blockNumber ?? head)) + 1, []);
}

test("An exam whose payment a reorganization removes states nothing until it has been repeated, and is final with its payments", async () => {
  const examiner = privateKeyToAccount(EXAM_KEY).address;
  await chain.fund(examiner, 5_000_000n);
  const shop = await forFile(openShop(chain));
  const payer = await newPayer(chain, 2_000_000n);
  const config = {
    rpcUrls: base.rpcUrls,
    exams: { key: EXAM_KEY, daily: 5_000_000n },
    arbiterAllowedOrigins: [shop.url],
  };
  const service = await forFile(startService({ chain, database, now: base.now, config }));
  const url = `${shop.url}/haiku`;
  shop.place(await lineFor(service.url, url, payer));
  await base.caughtUp();
  let [paid, isTaken] = [0, false];
  shop.before(async ({ isPaid }) => {
    if (isPaid) paid += 1;
    // Five forged payments and the purchase are followed by an unpaid request.
    if (isPaid || paid !== 6 || isTaken) return;
    isTaken = true;
    await takeBack(examiner);
  });
  const signed = await signPayment(payer, { value: EXAM_PRICE, validBefore: base.unixNow() + 600n });
  const order = (headers: Record<string, string>) =>
    post(`${service.url}/test/seller`, { "content-type": "application/json", ...headers }, JSON.stringify({ url }));
  expect((await order({})).status).toBe(402);
  let id: unknown;
  await eventually(async () => {
    id = (await order(v2(signed))).body.id;
    return typeof id;
  }, "string");
  let record: Record<string, unknown> = {};
  await eventually(
    async () => {
      // The payment does not come back, however long the exam waits.
      await base.pass(service.logged.some((line) => line.includes("did not finish")) || paid < 19 ? 0 : 1);
      await owner.query("UPDATE seller_exam_work SET due_at = '-infinity'");
      record = (await send(`${service.url}/exam/${id}`)).body;
      return record.status;
    },
    "complete",
    90_000,
  );
  expect(record, JSON.stringify(record.checks)).toMatchObject({
    level: "full",
    certified: true,
    runs: 2,
    spent: "0.003",
  });
  expect(service.logged.join()).toContain("does not show the outcome of the exam's payments");
  await base.pass(FINAL_MINUTES);
  await stillWaiting(0);
  expect(await reasons(shop.url)).toEqual([]);
  // Two payments of the first run are left, and all three of the second.
  expect(await chain.usdcBalance(shop.payTo)).toBe(5_000n);
});
