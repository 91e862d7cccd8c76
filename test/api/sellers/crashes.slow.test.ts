import { parseAbi } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { connect } from "../../../api/platform/db/connection.ts";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { createExamStore } from "../../../api/sellers/exam-store.ts";
import { createExamWork } from "../../../api/sellers/exam-work-store.ts";
import { EXAM_PRICE } from "../../../api/sellers/products.ts";
import { interrupted, refundNonce } from "../../../api/sellers/refund.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { leaveAt, startFaultyNode, unreachable } from "../../support/chain/nodes.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { submit } from "../../support/payments/on-chain.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { buyExam, EXAM_KEY, ended, lineFor, outcomesOf } from "../../support/sellers/buying.ts";
import { openShop, type Shop } from "../../support/sellers/shop.ts";
import type { ApiProcess } from "../../support/service/api-process.ts";
import { startApiStageOn } from "../../support/service/api-process.ts";
import { connectOwner } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

describe("Killed processes", async () => {
  const stage = await forFile(startApiStageOn(startTestChain({ mining: { everySeconds: 1 } })));
  const { chain, owner } = stage;
  await chain.fund(privateKeyToAccount(EXAM_KEY).address, 20_000_000n);
  const payer = await newPayer(chain, 20_000_000n);
  const openOne = () => forFile(openShop(chain));
  const shops = [await openOne(), await openOne(), await openOne(), await openOne()] as const;
  const node = await forFile(startFaultyNode(chain));
  const BASE_URL = "http://trust.localhost";
  const start = () =>
    stage.start(node, {
      EXAM_PRIVATE_KEY: EXAM_KEY,
      BASE_URL,
      ARBITER_ALLOWED_ORIGINS: shops.map(({ url }) => url).join(","),
    });

  /** Ends all leases. Call it before another process starts, which may take an exam. */
  const endLeases = () => owner.query("UPDATE seller_exam_work SET lease_until = '-infinity', due_at = '-infinity'");
  const signedBy = async (id: unknown): Promise<number> =>
    (await owner.query("SELECT FROM seller_exam_signature WHERE exam = $1", [id])).rowCount ?? 0;
  const workOf = async (id: unknown): Promise<number> =>
    (await owner.query("SELECT FROM seller_exam_work WHERE exam = $1", [id])).rowCount ?? 0;

  /**
   * Makes the shop stop answering from the first request that `isStalled` accepts. Resolves when that request arrives.
   */
  function stall(shop: Shop, isStalled: (request: { readonly isPaid: boolean }) => boolean): Promise<void> {
    return new Promise((reached) => {
      shop.before((request) => {
        if (!isStalled(request)) return;
        reached();
        return new Promise(() => undefined);
      });
    });
  }
  const answerAgain = (shop: Shop) => shop.before(() => undefined);

  async function order(api: ApiProcess, shop: Shop, buyer = payer): Promise<unknown> {
    const url = `${shop.url}/haiku`;
    shop.place(await lineFor(api.url, url, buyer));
    const { answer } = await buyExam(api.url, buyer, { url });
    expect(answer.status, answer.text).toBe(200);
    return answer.body.id;
  }

  test("A process killed before it signed costs nothing, and another process holds the exam", async () => {
    const [shop] = shops;
    const api = await start();
    let asked = 0;
    // The intake reads two files and a quote. The exam then reads the file again and its first quote.
    const stalled = stall(shop, () => ++asked > 4);
    const id = await order(api, shop);
    await stalled;
    expect(await signedBy(id)).toBe(0);
    await api.kill();
    answerAgain(shop);
    await endLeases();
    const other = await start();
    expect(await ended(other.url, id)).toMatchObject({ status: "complete", level: "full", runs: 1, spent: "0.003" });
    expect(await chain.usdcBalance(shop.payTo)).toBe(3_000n);
    await other.stop();
  });

  test("An exam whose process was killed after it signed is held once more by another process with new payments", async () => {
    const [, shop] = shops;
    const api = await start();
    let paid = 0;
    const stalled = stall(shop, ({ isPaid }) => isPaid && ++paid > 6);
    const id = await order(api, shop);
    await stalled;
    const before = await signedBy(id);
    expect(before).toBeGreaterThan(5);
    await api.kill();
    answerAgain(shop);
    await endLeases();
    const others = await Promise.all([start(), start()]);
    const record = await ended(others[0].url, id);
    expect(record).toMatchObject({ status: "complete", level: "full", runs: 2, spent: "0.003" });
    expect(await signedBy(id)).toBe(before + 8);
    // One payment of the first run had settled, and the second run made three.
    expect(await chain.usdcBalance(shop.payTo)).toBe(4_000n);
    await Promise.all(others.map((other) => other.stop()));
  });

  test("After a second kill the exam ends as interrupted, without a verdict about the seller", async () => {
    const [, , shop] = shops;
    const first = await start();
    const stalled = stall(shop, ({ isPaid }) => isPaid);
    const id = await order(first, shop);
    await stalled;
    await first.kill();
    const again = stall(shop, ({ isPaid }) => isPaid);
    await endLeases();
    const second = await start();
    await again;
    await second.kill();
    answerAgain(shop);
    await endLeases();
    const third = await start();
    const record = await ended(third.url, id);
    expect(record).toMatchObject({ status: "interrupted", level: null, certified: false, checks: [], runs: 2 });
    expect(record.valid_until).toBeNull();
    await eventually(() => workOf(id), 0);
    expect(await chain.usdcBalance(shop.payTo)).toBeLessThanOrEqual(6_002n);
    await third.stop();
  });

  const USED = parseAbi(["event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)"]);

  /** Ends an exam as a run that fails through our fault. */
  async function breakOff(id: unknown): Promise<void> {
    await endLeases();
    const pool = connect(stage.database.apiUrl);
    const taken = await createExamWork(pool).take();
    expect(taken?.order.id).toBe(id);
    const times = { beganAt: new Date(), endedAt: new Date() };
    await createExamStore(pool).complete(
      String(id),
      taken?.run ?? "",
      interrupted({ ...times, runs: 1, end: "refund" }),
    );
    await pool.end();
  }

  test("A refund is paid once if its process is killed before or after the node gets the transaction", async () => {
    const [, , , shop] = shops;
    const buyer = await newPayer(chain, 1_000_000n);
    let asked = 0;
    const stalled = stall(shop, () => ++asked > 4);
    const first = await start();
    const id = await order(first, shop, buyer);
    await stalled;
    const makeDue = () => owner.query("UPDATE seller_exam_work SET due_at = '-infinity'");
    const killedAsItPays = async (api: ApiProcess, heard: "heard" | "unheard") => {
      let isSent = false;
      leaveAt(node, "eth_sendRawTransaction", heard).then(() => {
        isSent = true;
      });
      if (api === first) await breakOff(id);
      await eventually(() => makeDue().then(() => isSent), true);
      await api.kill();
      node.become(null);
      await endLeases();
    };
    await killedAsItPays(first, "unheard");
    await killedAsItPays(await start(), "heard");
    const last = await start();
    await eventually(() => makeDue().then(() => workOf(id)), 0);
    const { address } = chain.network.usdc;
    const args = { authorizer: privateKeyToAccount(EXAM_KEY).address, nonce: refundNonce(String(id)) };
    const paid = await chain.client.getLogs({ address, event: USED[0], args, fromBlock: 0n });
    expect(paid).toHaveLength(1);
    expect(await chain.usdcBalance(buyer.address)).toBe(EXAM_PRICE);
    const [{ transactionHash: transaction, blockNumber } = { transactionHash: "", blockNumber: 0n }] = paid;
    expect(await ended(last.url, id)).toMatchObject({
      status: "interrupted",
      refund: { transaction, block: Number(blockNumber) },
    });
    await last.stop();
  });
});

describe("Refunds", async () => {
  const chain = await forFile(startTestChain({ mining: { everySeconds: 1 } }));
  const node = await forFile(startFaultyNode(chain));
  const examiner = privateKeyToAccount(EXAM_KEY);
  await chain.fund(examiner.address, 20_000_000n);
  const shops = [
    await forFile(openShop(chain)),
    await forFile(openShop(chain)),
    await forFile(openShop(chain)),
  ] as const;
  let minutes = 0;
  const service = await forFile(
    startService({
      chain,
      now: () => new Date(Date.now() + minutes * 60_000),
      config: {
        rpcUrls: eachNetwork(() => node.url),
        exams: { key: EXAM_KEY, daily: 50_000_000n },
        arbiterAllowedOrigins: shops.map(({ url }) => url),
      },
    }),
  );
  const owner = await forFile(connectOwner(service.database));
  const stopped = (id: unknown) =>
    service.logged.some((line) => line.includes("did not finish") && line.includes(String(id)));

  async function buy(shop: Shop, payer: Awaited<ReturnType<typeof newPayer>>): Promise<unknown> {
    const url = `${shop.url}/haiku`;
    shop.place(await lineFor(service.url, url, payer));
    const { answer } = await buyExam(service.url, payer, { url });
    expect(answer.status, answer.text).toBe(200);
    return answer.body.id;
  }

  /** Runs `work` at the first payment as quoted, which follows five forged ones. */
  function atThePurchase(shop: Shop, work: () => "cut" | Promise<void>): void {
    let paid = 0;
    shop.before(({ isPaid }) => (isPaid && ++paid === 6 ? work() : undefined));
  }

  test("A request lost by our network does not fail the seller, and one lost by the seller does", async () => {
    const [, ours, theirs] = shops;
    const payer = await newPayer(chain, 4_000_000n);
    atThePurchase(ours, () => {
      node.become(unreachable);
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

  test("An exam that fails for lack of our funds has no verdict and is refunded once", async () => {
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
    expect(record).toMatchObject({
      status: "interrupted",
      level: null,
      certified: false,
      checks: [],
      valid_until: null,
    });
    expect(record).toMatchObject({ note: expect.stringMatching(/buyer gets back what it cost/), refund: null });
    await chain.fund(examiner.address, 5_000_000n);
    const makeDue = () => owner.query("UPDATE seller_exam_work SET due_at = '-infinity'");
    await eventually(() => makeDue().then(() => chain.usdcBalance(payer.address)), 2_000_000n);
    // The refund is looked up until it is final, and is sent once.
    await eventually(() => makeDue().then(({ rowCount }) => rowCount), 0);
    expect(await chain.usdcBalance(examiner.address)).toBe(5_000_000n - EXAM_PRICE);
    expect(await ended(service.url, id)).toMatchObject({
      refund: { transaction: expect.stringMatching(/^0x\w{64}$/) },
    });
  });
});
