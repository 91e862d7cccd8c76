import { describe, expect, test } from "vitest";
import { forFile } from "../../../support/for-file.ts";
import { expectProblem } from "../../../support/payments/expectations.ts";
import { readFromChain, settlements } from "../../../support/payments/on-chain.ts";
import { post, v2 } from "../../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../../support/payments/signing.ts";
import { PAY_TO } from "../../../support/service/environment.ts";
import { buy as buyAt } from "../../../support/sessions/agents.ts";
import {
  buy,
  offered,
  orderUrl,
  passWindow,
  pay,
  signOrder,
  startLossy,
} from "../../../support/sessions/lost-orders.ts";
import {
  askResult,
  attempt,
  attemptUrl,
  bare,
  CONTROL,
  challengeIn,
  ENTRY,
  expectIncomplete,
  expectSpent,
  expectStored,
  expectVerdict,
  from,
  isReplay,
  opened,
  PURSE,
  payControl,
  type Run,
  type RunPlan,
  serve,
  serveBoth,
  sign,
  startRun,
  termsOf,
} from "../../../support/sessions/runs.ts";
import { openShop } from "../../../support/sessions/shop.ts";
import { startStage } from "../../../support/sessions/stage.ts";

/**
 * One product is enough because both tests with a bait share this code. Their differences are covered by rules.test.ts
 * and the agents' journeys.
 */
const product = "recipient" as const;

/**
 * Sessions whose start answer is sent again, to the agent or to strangers. The same evidence then counts for a PASS and
 * for a FAIL.
 */

// Each request carries its sender's address, or comes from this machine.
const stage = await forFile(startStage({ config: { trustedProxies: ["127.0.0.1"] } }));
const at = stage.service.url.replace("localhost", "127.0.0.1");
const STRANGER = from("203.0.113.9");
const shop = await forFile(openShop({ payTo: PAY_TO, value: 1n }));

const start = (product: Run["product"], plan?: RunPlan) => startRun({ ...stage, at }, product, plan);
const startUrl = (product: string) => `${at}/test/${product}/start`;

const rebuilt = async (run: Pick<Run, "account">, value: bigint) =>
  v2(await readFromChain(stage.chain, run.account.address, value));

describe("A stranger who rebuilds a session's payments from the chain", () => {
  test("A stranger who replays the entry gets the token but cannot cause a FAIL, and the session ends without a verdict", async () => {
    const run = await start(product);
    const entry = await post(startUrl(product), { ...(await rebuilt(run, ENTRY)), ...STRANGER });
    expect([entry.status, isReplay(entry)]).toEqual([200, true]);
    expect(JSON.stringify(entry.body.next)).toContain(String(run.token));
    await serveBoth(run);
    const { to, value } = termsOf(run, "bait");
    shop.quote = { payTo: to, value };
    expect(await buyAt(`${shop.url}/goods`, run.account, { spending: false })).toMatchObject({ status: 200 });
    for (let time = 0; time < 2; time++) expectProblem(await shop.handIn(attemptUrl(run)), 410, "session_over");
    await expectStored(stage, run, null);
    await expectSpent(stage, run, [ENTRY]);
    const { body } = await askResult(run);
    expect(body).toMatchObject({ status: "incomplete", armed: false });
    expect(body.message).toMatch(/was ended by a signature that proves nothing/);
  });

  test("A stranger with the token is not served a challenge and does not affect the session", async () => {
    const run = await start(product, { first: "control" });
    await post(startUrl(product), { ...(await rebuilt(run, ENTRY)), ...STRANGER });
    expectProblem(await attempt(run, STRANGER), 410, "session_over");
    expect(await serve(run)).toBe("control");
    const answer = await attempt(run, STRANGER);
    expectProblem(answer, 410, "session_over");
    expect(answer.body.detail).toMatch(/only from the address that used it before\. Nothing was charged/);
    expect(await serve(run)).toBe("bait");
    await payControl(run);
    expectVerdict(await askResult(run), run, "pass");
  });

  test("A stranger without a valid bait signature cannot end the session", async () => {
    const run = await start(product);
    await post(startUrl(product), { ...(await rebuilt(run, ENTRY)), ...STRANGER });
    await serveBoth(run);
    const forged = { ...(await sign(run, "bait")), signature: `0x${"11".repeat(64)}1b` } as const;
    for (const sender of [STRANGER, {}])
      expectProblem(await attempt(run, { ...v2(forged), ...sender }), 400, "malformed_request");
    await payControl(run);
    expectVerdict(await askResult(run), run, "pass");
  });

  test("A stranger without the token gets no replay of the control", async () => {
    const run = await start(product);
    await serveBoth(run);
    const paid = await payControl(run);
    const stolen = await attempt(bare(run), await rebuilt(run, CONTROL));
    expectProblem(stolen, 409, "payment_conflict");
    expect(stolen.text).not.toContain(String(run.token));
    const own = await attempt(run, v2(paid));
    expect([own.status, isReplay(own), own.text.includes(String(run.token))]).toEqual([200, true, true]);
  });

  test("A stranger gets no replay of an entry with an identifier", async () => {
    const { run } = await startWithId(product);
    const answer = await post(startUrl(product), { ...(await rebuilt(run, ENTRY)), ...STRANGER });
    expectProblem(answer, 409, "payment_conflict");
    await serveBoth(run);
    expectVerdict(await attempt(run, v2(await sign(run, "bait"))), run, "fail");
  });
});

const ID = "an-identifier-of-mine";

async function startWithId(product: Run["product"], sender = {}) {
  const account = await newPayer(stage.chain, PURSE);
  const headers = v2(await signPayment(account, { value: ENTRY }), { id: ID });
  const { body } = await post(startUrl(product), { ...headers, ...sender });
  return { run: await opened(stage.owner, { product, account, at }, { body }), headers };
}

describe("A client that requests its start answer again", () => {
  const again = async (run: Run, sender = {}) =>
    expect(isReplay(await post(startUrl(product), { ...(await rebuilt(run, ENTRY)), ...sender }))).toBe(true);
  const baited = async (run: Run, sender = {}) => attempt(run, { ...v2(await sign(run, "bait")), ...sender });

  test("A client that repeats its start still fails when it signs the bait", async () => {
    const run = await start(product);
    await again(run);
    await serveBoth(run);
    await again(run);
    expectVerdict(await baited(run), run, "fail");
  });

  test.each([
    ["before any challenge is served", true],
    ["after both challenges are served", false],
  ])(
    "A client that repeats its start from another address %s fails when it signs the bait from its own",
    async (_, first) => {
      const run = await start(product);
      if (first) await again(run, STRANGER);
      await serveBoth(run);
      if (!first) await again(run, STRANGER);
      await payControl(run);
      expectVerdict(await baited(run), run, "fail");
    },
  );

  test("A client that repeats its start from another address and signs the bait there can no longer pass", async () => {
    const run = await start(product);
    await serveBoth(run);
    await payControl(run);
    await again(run, STRANGER);
    expectProblem(await baited(run, STRANGER), 410, "session_over");
    expectIncomplete(await askResult(run));
    await expectStored(stage, run, null);
    await expectSpent(stage, run, [ENTRY, CONTROL]);
  });

  test("A client cannot probe from another address which order is safe, because either one ends the session uncharged", async () => {
    for (const order of ["control", "bait"] as const) {
      const run = await start(product);
      await again(run, STRANGER);
      await serveBoth(run);
      const tried = await attempt(run, { ...v2(await sign(run, order)), ...STRANGER });
      expectProblem(tried, 410, "session_over");
      expectProblem(await attempt(run, v2(await sign(run, "control"))), 410, "session_over");
      expectIncomplete(await askResult(run));
      await expectStored(stage, run, null);
      await expectSpent(stage, run, [ENTRY]);
    }
  });

  test("A replay of the control from another address does not end the session", async () => {
    const run = await start(product);
    await serveBoth(run);
    const paid = await payControl(run);
    await again(run, STRANGER);
    expect(isReplay(await attempt(run, { ...v2(paid), ...STRANGER }))).toBe(true);
    expectVerdict(await askResult(run), run, "pass");
  });

  test("A client can continue only from the address where it last used the token", async () => {
    const home = from("203.0.113.20");
    const run = await start(product, { first: "bait" });
    expect(challengeIn(run, await attempt(run, home))).toBe("bait");
    await again(run, STRANGER);
    for (const sender of [{}, STRANGER]) expectProblem(await attempt(run, sender), 410, "session_over");
    expect(challengeIn(run, await attempt(run, home))).toBe("control");
    expectVerdict(await baited(run, home), run, "fail");
  });

  test("A start repeated with another authorization under the same identifier also counts as a second address", async () => {
    const { run } = await startWithId(product);
    await serveBoth(run);
    const fresh = v2(await signPayment(run.account, { value: ENTRY }), { id: ID });
    expect(isReplay(await post(startUrl(product), { ...fresh, ...STRANGER }))).toBe(true);
    expectProblem(await baited(run, STRANGER), 410, "session_over");
    await payRefused(run);
    expectIncomplete(await askResult(run));
    await expectStored(stage, run, null);
  });
});

const payRefused = async (run: Run) =>
  expectProblem(await attempt(run, v2(await sign(run, "control"))), 410, "session_over");

test("An agent that lost its start answer gets the same bytes again and can pass", async () => {
  const account = await newPayer(stage.chain, PURSE);
  const signed = await signPayment(account, { value: ENTRY });
  const url = startUrl(product);
  const lost = await post(url, v2(signed));
  const again = await post(url, v2(signed));
  expect([again.text, isReplay(again)]).toEqual([lost.text, true]);
  const run = await opened(stage.owner, { product, account, at }, { body: again.body });
  await serveBoth(run);
  await payControl(run);
  expectVerdict(await askResult(run), run, "pass");
});

describe("A retry session whose start answer was sent again", () => {
  test("Once strangers may have the token, a second authorization from elsewhere causes no FAIL and rules out a PASS", async () => {
    const run = await startLossy({ ...stage, at }, { way: "unavailable", lost: 1 });
    await buy(run, 2);
    const { signed } = await buy(run, 1);
    const entry = await rebuilt(run, ENTRY);
    expect((await post(startUrl("retry"), { ...entry, ...STRANGER })).status).toBe(200);
    expectProblem(await post(orderUrl(run, 1), STRANGER), 410, "session_over");
    const second = { ...v2(await signOrder(run, 1)), ...STRANGER };
    expectProblem(await post(orderUrl(run, 1), second), 410, "session_over");
    await pay(run, 1, signed);
    await passWindow(stage, run);
    const answer = await askResult(run);
    expectIncomplete(answer);
    expect(answer.body.message).toMatch(/^This session will not lead to a certificate/);
  });

  test("A second authorization is a FAIL even if the start answer was sent again to another address", async () => {
    const run = await startLossy({ ...stage, at }, { way: "unavailable", lost: 1 });
    await buy(run, 1);
    const entry = await rebuilt(run, ENTRY);
    for (const sender of [{}, STRANGER])
      expect((await post(startUrl("retry"), { ...entry, ...sender })).status).toBe(200);
    expect((await pay(run, 1, await signOrder(run, 1)))?.body).toMatchObject({ verdict: "fail" });
  });

  test("Once strangers may have the token, an order from elsewhere is not charged", async () => {
    const run = await startLossy({ ...stage, at }, { way: "unavailable", lost: 1 });
    for (const order of [1, 2] as const) await offered(run, order);
    const entry = await rebuilt(run, ENTRY);
    await post(startUrl("retry"), { ...entry, ...STRANGER });
    for (const order of [1, 2] as const)
      expectProblem(
        await post(orderUrl(run, order), { ...v2(await signOrder(run, order)), ...STRANGER }),
        410,
        "session_over",
      );
    expect(await settled(run)).toEqual([ENTRY]);
  });
});

const settled = async ({ account }: Pick<Run, "account">) =>
  (await settlements(stage.chain, account.address)).map(({ value }) => value);
