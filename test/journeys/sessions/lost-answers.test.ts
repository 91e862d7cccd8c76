import { describe, expect, test } from "vitest";
import { type OrderNumber, WAYS, type Way } from "../../../api/certificates/retry/lost-order.ts";
import { forFile } from "../../support/for-file.ts";
import { expectPaymentRequired, expectProblem } from "../../support/payments/expectations.ts";
import { settlements } from "../../support/payments/on-chain.ts";
import { type Answer, challengeOf, post, send, v1, v2 } from "../../support/payments/requests.ts";
import { altered, newPayer, type Signed, signPayment, unixNow } from "../../support/payments/signing.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import {
  buy,
  drawn,
  FIRST_PRICE,
  type LossyRun,
  offered,
  orderUrl,
  passWindow,
  pay,
  priceOf,
  SECOND_PRICE,
  SEEN,
  signOrder,
  startLossy,
} from "../../support/sessions/lost-orders.ts";
import { askResult, ENTRY, expectIncomplete, isReplay, PURSE } from "../../support/sessions/runs.ts";
import { startStage } from "../../support/sessions/stage.ts";

const stage = await forFile(startStage({ lateMs: 300 }));
const ground = { ...stage, at: stage.service.url };

const start = (way?: Way, lost?: OrderNumber, account?: LossyRun["account"]) =>
  startLossy(ground, { ...(way && { way }), ...(lost && { lost }), ...(account && { account }) });

const settled = async ({ account }: LossyRun) =>
  (await settlements(stage.chain, account.address)).map(({ value }) => value);

function expectPassed(answer: Answer, run: LossyRun): void {
  expect({ http: answer.status, ...answer.body }).toMatchObject({ http: 200, status: "complete", verdict: "pass" });
  expect(answer.body.deliverable).toMatchObject({ type: "certificate", id: run.id });
}

const record = (run: LossyRun) => send(`${stage.service.url}/cert/${run.id}`);
const known = async (run: LossyRun) => {
  const { body } = await send(`${stage.service.url}/verify?wallet=${run.account.address}`);
  return (body.capabilities as Record<string, unknown>).retry_safety;
};

describe.each(WAYS.map((way, place) => ({ way, lost: place % 2 === 0 ? 1 : 2 }) as const))(
  "lost response to paid order $lost: $way",
  ({ way, lost }) => {
    test("The same header returns the response, and the run passes after the window", async () => {
      const run = await start(way, lost);
      const plain = await buy(run, run.plain);
      expect(plain.answer?.body).toMatchObject({ status: "action_required", deliverable: { type: "order" } });
      const { signed, answer } = await buy(run, run.lost);
      SEEN[way](answer);
      const again = await pay(run, run.lost, signed);
      expect([again?.status, again?.body.deliverable]).toMatchObject([
        200,
        { type: "order", paid: lost === 1 ? "0.08" : "0.12" },
      ]);
      expect(isReplay(again as Answer)).toBe(true);
      const early = await askResult(run);
      expectIncomplete(early);
      expect(early.body.deliverable).toMatchObject({
        orders_offered: 2,
        orders_paid: 2,
        window_ends: expect.any(String),
      });
      await passWindow(ground, run);
      expectPassed(await askResult(run), run);
      expect((await askResult(run)).text).toBe((await askResult(run)).text);
      expect(await settled(run)).toEqual([ENTRY, priceOf(run.plain), priceOf(run.lost)]);
      expect((await record(run)).body).toMatchObject({
        product: "retry",
        checks: { paid: "pass", control_settled: "pass", paid_once: "pass" },
        detected: {
          behaviour: { bait: { signed: false }, lost: { way, nonce: signed.authorization.nonce, asked_at: null } },
        },
      });
      expect(await known(run)).toMatchObject({ tested: true, result: "pass", fresh: true });
    });
  },
);

test("Both orders have the same text except for their terms and URLs", async () => {
  const run = await start();
  const [one, two] = [await offered(run, 1), await offered(run, 2)].map((answer) =>
    JSON.stringify(challengeOf(answer)),
  );
  const plain = (text = "", amount: bigint) =>
    text
      .replaceAll(String(amount), "")
      .replace(/order=\d/g, "")
      .replace(/"signature":"[\w.-]+"/g, "");
  expect(plain(one, FIRST_PRICE)).toBe(plain(two, SECOND_PRICE));
  expect(`${one}${two}`.replaceAll(run.token, "")).not.toMatch(/bait|control|lost|withh/i);
});

describe("influence on a verdict", () => {
  test("A request without the session's token, or with another one's, does not count", async () => {
    const run = await start("unavailable", 1);
    const { signed } = await buy(run, 1);
    const second = await signOrder(run, 1);
    const bare = orderUrl(run, 1).replace(/&session=[^&]*/, "");
    for (const url of [bare, orderUrl({ ...run, token: "A".repeat(22) }, 1)])
      for (const one of [second, signed]) expectProblem(await post(url, v2(one)), 404, "not_found");
    expect(await lostOrder(run)).toMatchObject({ sent_again_at: null });
    expectIncomplete(await askResult(run));
  });

  test("A signature of another wallet, an invalid one, other terms, or the other order's do not count", async () => {
    const run = await start("unavailable", 1);
    const { signed } = await buy(run, 1);
    const other = await newPayer(stage.chain, PURSE);
    expectProblem((await pay(run, 1, await signPayment(other, { value: FIRST_PRICE }))) as Answer, 409, "wrong_payer");
    const second = await signOrder(run, 1);
    const forged = { ...second, signature: altered(second.signature) };
    expectProblem((await pay(run, 1, forged)) as Answer, 400, "malformed_request");
    expectProblem(
      (await pay(run, 1, { ...signed, signature: altered(signed.signature) })) as Answer,
      400,
      "malformed_request",
    );
    for (const fields of [{ value: FIRST_PRICE + 1n }, { value: SECOND_PRICE }, { to: other.address }])
      expectPaymentRequired((await pay(run, 1, await signOrder(run, 1, fields))) as Answer);
    const closed = await signOrder(run, 1, { validBefore: unixNow() - 1n });
    expectPaymentRequired((await pay(run, 1, closed)) as Answer);
    expect(await lostOrder(run)).toMatchObject({ sent_again_at: null, second_at: null });
    await expectNoVerdict(run);
  });

  test("A payment by the wallet elsewhere does not count", async () => {
    const account = await newPayer(stage.chain, PURSE);
    const [run, other] = [await start("unavailable", 1, account), await start("unavailable", 2, account)];
    await buy(run, 1);
    const elsewhere = await buy(other, 1);
    expect(elsewhere.answer?.status).toBe(200);
    for (const headers of [v1, v2])
      expectProblem(await post(orderUrl(run, 1), headers(elsewhere.signed)), 409, "payment_conflict");
    await expectNoVerdict(run);
  });

  test("Once strangers may know the token, only the address that lost the response can retry", async () => {
    // Uses one of the two loopback addresses, so that all requests come from the same address.
    const at = stage.service.url.replace("localhost", "127.0.0.1");
    const run = await startLossy({ ...stage, at }, { way: "unavailable", lost: 1 });
    await buy(run, 2);
    const { signed } = await buy(run, 1);
    await stage.owner.query("UPDATE test_session SET token_shared = true WHERE id = $1", [run.id]);
    const sender = (await lostOrder(run)).sender as Buffer;
    const from = (who: Buffer) =>
      stage.owner.query("UPDATE lost_order SET sender = $2 WHERE session = $1", [run.id, who]);
    await from(Buffer.alloc(32, 1));
    expect((await pay(run, 1, signed))?.status).toBe(200);
    expect(await lostOrder(run)).toMatchObject({ sent_again_at: null });
    await from(sender);
    await pay(run, 1, signed);
    await passWindow(ground, run);
    expectPassed(await askResult(run), run);
  });
});

const lostOrder = async ({ id }: LossyRun) =>
  (await stage.owner.query("SELECT * FROM lost_order WHERE session = $1", [id])).rows[0];

async function expectNoVerdict(run: LossyRun): Promise<void> {
  const { rows } = await stage.owner.query("SELECT verdict FROM test_session WHERE id = $1", [run.id]);
  expect(rows).toEqual([{ verdict: null }]);
  expect((await record(run)).status).toBe(404);
}

test("Copies that are under way when the response is lost are lost too and do not count as retries", async () => {
  const run = await start("unavailable", 1);
  await offered(run, 1);
  const signed = await signOrder(run, 1);
  const answers = await Promise.all([1, 2, 3].map(() => pay(run, 1, signed)));
  const statuses = answers.map((answer) => answer?.status);
  expect(statuses).toContain(503);
  if (!statuses.includes(200)) expect(await lostOrder(run)).toMatchObject({ sent_again_at: null });
  expect((await pay(run, 1, signed))?.status).toBe(200);
  expect(await settled(run)).toEqual([ENTRY, FIRST_PRICE]);
});

test("One of two concurrent authorizations is charged, and the other causes no FAIL but rules out a PASS", async () => {
  const run = await start("unavailable", 1);
  await buy(run, 2);
  await offered(run, 1);
  const both = [await signOrder(run, 1), await signOrder(run, 1)];
  const statuses = (await Promise.all(both.map((signed) => pay(run, 1, signed)))).map((answer) => answer?.status);
  expect(await settled(run)).toEqual([ENTRY, SECOND_PRICE, FIRST_PRICE]);
  // Whether the second waited until the first had settled depends on the machine's speed.
  if (statuses.includes(200)) return expect((await askResult(run)).body).toMatchObject({ verdict: "fail" });
  expect(statuses.toSorted()).toEqual([409, 503]);
  await pay(run, 1, both[statuses.indexOf(503)] as Signed);
  await passWindow(ground, run);
  expectIncomplete(await askResult(run));
  expect((await askResult(run)).body.message).toMatch(/^This session will not lead to a certificate/);
});

test("The lost order and the way are random for each session", async () => {
  while (drawn.length < 25) await start();
  expect(new Set(drawn.map(({ lost }) => lost)).size).toBe(2);
  expect(new Set(drawn.map(({ way }) => way)).size).toBeGreaterThan(2);
});

test("The proof of a FAIL is published once the second authorization has expired", async () => {
  const run = await start("unavailable", 1);
  await buy(run, 1);
  const second: Signed = await signOrder(run, 1, { validBefore: unixNow() + 25n });
  await offered(run, 1);
  expect((await pay(run, 1, second))?.body).toMatchObject({ verdict: "fail" });
  await stage.chain.increaseTime(60);
  await stage.chain.mine(3);
  expect(await stage.service.upkeep.proofs.publishDue()).toBeGreaterThan(0);
  expect((await record(run)).body).toMatchObject({
    proof: {
      certificate: run.id,
      challenge: { pay_to: PAY_TO, amount: "80000" },
      signature: second.signature,
      typed_data: { message: { nonce: second.authorization.nonce } },
      broadcast: false,
    },
  });
});
