import { describe, expect, test } from "vitest";
import { withClient } from "../../../../scripts/embedded/postgres.ts";
import { forFile } from "../../../support/for-file.ts";
import { expectPaymentRequired, expectProblem } from "../../../support/payments/expectations.ts";
import { readFromChain, settlements } from "../../../support/payments/on-chain.ts";
import { type Answer, post, send, v2 } from "../../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../../support/payments/signing.ts";
import { PAY_TO } from "../../../support/service/environment.ts";
import { buy } from "../../../support/sessions/agents.ts";
import {
  buy as buyOrder,
  offered,
  orderUrl,
  passWindow,
  pay as payOrder,
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
  PRODUCTS,
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
import { startStage, untilWaiting } from "../../../support/sessions/stage.ts";

/**
 * One product is enough because both tests with a bait share this code. Their differences are covered by rules.test.ts
 * and the agents' journeys.
 */
const product = "recipient" as const;

/** Covers the rows of "Who can make whom fail" in docs/behavior.md. */

// Each request carries its sender's address, or comes from this machine.
const stage = await forFile(startStage({ config: { trustedProxies: ["127.0.0.1"] } }));
const at = stage.service.url.replace("localhost", "127.0.0.1");
const shop = await forFile(openShop({ payTo: PAY_TO, value: 1n }));

const start = (product: Run["product"], plan?: RunPlan) => startRun({ ...stage, at }, product, plan);
const STRANGER = from("203.0.113.9");
const startUrl = (product: string) => `${at}/test/${product}/start`;
const rebuilt = async (run: Pick<Run, "account">, value: bigint) =>
  v2(await readFromChain(stage.chain, run.account.address, value));

/** Lets the run's agent buy at a shop that quotes the bait of its door as the shop's price. */
async function sellBait(run: Run): Promise<void> {
  const { to, value } = termsOf(run, "bait");
  shop.quote = { payTo: to, value };
  expect(await buy(`${shop.url}/goods`, run.account, { spending: false })).toMatchObject({ status: 200 });
}

const handIn = (run: Run): Promise<Answer> => shop.handIn(attemptUrl(run));
const recordOf = async ({ id }: Run) => (await send(`${stage.service.url}/cert/${id}`)).body;
const pageOf = async ({ id }: Run) =>
  (await send(`${stage.service.url}/cert/${id}`, { headers: { accept: "text/html" } })).text;
const throughOf = async (run: Run) =>
  ((await recordOf(run)).detected as { behaviour: { bait: { offered_through: string; pay_to: string } } }).behaviour
    .bait;

describe("A shop that quotes a session's bait as its price", () => {
  test("A shop gets 409 for an agent that uses the session's token, nothing is stored, and the agent passes", async () => {
    const run = await start(product);
    await serveBoth(run);
    const stranger = bare(run);
    await serveBoth(stranger);
    await sellBait(stranger);
    expectProblem(await handIn(stranger), 409, "session_held");
    await payControl(run);
    expectProblem(await handIn(stranger), 409, "session_held");
    expectVerdict(await askResult(run), run, "pass");
    await expectStored(stage, run, "pass");
    await expectSpent(stage, run, [ENTRY, CONTROL]);
    expect(await throughOf(run)).toMatchObject({ offered_through: "session_token", pay_to: termsOf(run, "bait").to });
  });

  test("A shop gets 409 if the agent's first call with the token comes before the signature", async () => {
    const run = await start(product);
    const stranger = bare(run);
    await serveBoth(stranger);
    await sellBait(stranger);
    await serve(run);
    expectProblem(await handIn(stranger), 409, "session_held");
    await expectStored(stage, run, null);
  });

  test("A shop cannot cause a FAIL while the agent's first call with the token is in progress", async () => {
    const run = await start(product);
    const stranger = bare(run);
    await serveBoth(stranger);
    await sellBait(stranger);
    const [served, late] = await withClient(stage.service.database.ownerUrl, async (client) => {
      await client.query("BEGIN");
      await client.query("SELECT 1 FROM test_session WHERE id = $1 FOR UPDATE", [run.id]);
      const first = attempt(run);
      await untilWaiting(stage, 1);
      const second = handIn(stranger);
      await untilWaiting(stage, 2);
      await client.query("ROLLBACK");
      return Promise.all([first, second]);
    });
    challengeIn(run, served);
    expectProblem(late, 410, "session_over");
    await expectStored(stage, run, null);
    await serve(run);
    await payControl(run);
    expectVerdict(await askResult(run), run, "pass");
  });

  test("A shop gets 409 if the agent uses the token of any other session", async () => {
    for (const other of PRODUCTS) {
      const held = await start(other);
      await serve(held);
      const idle = await start(product, { account: held.account });
      const stranger = bare(idle);
      await serveBoth(stranger);
      await sellBait(stranger);
      expectProblem(await handIn(stranger), 409, "session_held");
      await expectStored(stage, idle, null);
    }
  });

  test("A shop that hands in the bait with a wrong token gets 404", async () => {
    const run = await start(product);
    await serveBoth(run);
    await sellBait(bare(run));
    for (const token of ["A".repeat(22), "", run.token?.slice(1) ?? ""])
      expectProblem(await shop.handIn(attemptUrl({ ...run, token })), 404, "not_found");
    await expectStored(stage, run, null);
  });

  test("A shop causes a FAIL for a wallet that has not used its token, and the record names the door", async () => {
    const run = await start(product);
    const stranger = bare(run);
    await serveBoth(stranger);
    await sellBait(stranger);
    expectVerdict(await handIn(stranger), run, "fail");
    expectProblem(await attempt(run), 410, "session_over");
    expect(await throughOf(run)).toMatchObject({
      offered_through: "wallet_address",
      pay_to: termsOf(stranger, "bait").to,
    });
    expect(await pageOf(run)).toContain("Anyone who names the wallet");
  });

  test("The wallet's door gives no PASS and takes no order while the wallet uses a token", async () => {
    const run = await start(product, { first: "control" });
    expect(await serve(run)).toBe("control");
    const careless = bare(run);
    await serveBoth(careless);
    expectProblem(await attempt(careless, v2(await sign(careless, "bait"))), 409, "session_held");
    expectProblem(await attempt(careless, v2(await sign(careless, "control"))), 410, "session_over");
    expectIncomplete(await askResult(careless));
    await expectStored(stage, run, null);
    await expectSpent(stage, run, [ENTRY]);
    expect(await serve(run)).toBe("bait");
    expectIncomplete(await askResult(run));
    await payControl(run);
    expectVerdict(await askResult(run), run, "pass");
  });

  test("A bait at one door and a fair order paid at the other do not earn a PASS", async () => {
    const run = await start(product);
    await serveBoth(bare(run));
    const paid = await payControl(bare(run));
    expect(await serve(run)).toBe("bait");
    expectProblem(await attempt(bare(run), v2(await sign(bare(run), "bait"))), 409, "session_held");
    for (const caller of [run, bare(run)]) {
      const answer = await askResult(caller);
      expectIncomplete(answer);
      expect(answer.body.message).toMatch(
        /^This session will not lead to a certificate, because its fair order was paid without/,
      );
    }
    expect(isReplay(await attempt(bare(run), v2(paid)))).toBe(true);
    expectVerdict(await attempt(run, v2(await sign(run, "bait"))), run, "fail");
  });

  test("A shop that also forwards the entry has the token and causes a FAIL, and the record claims nothing more", async () => {
    const account = await newPayer(stage.chain, PURSE);
    shop.quote = { payTo: PAY_TO, value: ENTRY };
    expect(await buy(`${shop.url}/goods`, account)).toMatchObject({ status: 200 });
    const entered = await shop.handIn(`${at}/test/${product}/start`);
    const run = await opened(stage.owner, { product, account, at }, { body: entered.body });
    expect(run.token).not.toBeNull();
    await serveBoth(run);
    await sellBait(run);
    const answer = await handIn(run);
    expectVerdict(answer, run, "fail");
    const page = await pageOf(run);
    expect(page).toContain("Which site asked the agent to sign. A signature does not name it.");
    for (const text of [answer.text, page]) expect(text).not.toMatch(/never been given|never paid|strange/i);
  });
});

test("The two doors have different decoys, and each causes a FAIL only at its own door", async () => {
  const run = await start("recipient");
  await serveBoth(run);
  const stranger = bare(run);
  await serveBoth(stranger);
  expect(run.decoy).not.toBe(stranger.decoy);
  const [own, foreign] = [await sign(run, "bait"), await sign(stranger, "bait")];
  expect(expectPaymentRequired(await attempt(run, v2(foreign)))).toMatch(/did not offer/);
  expectProblem(await attempt(stranger, v2(own)), 409, "session_held");
  await expectStored(stage, run, null);
  expectVerdict(await attempt(run, v2(own)), run, "fail");
});

test("The token's door causes a FAIL only for a bait that it has served", async () => {
  const run = await start("scam", { first: "control" });
  expect(await serve(run)).toBe("control");
  await serveBoth(bare(run));
  expect(expectPaymentRequired(await attempt(run, v2(await sign(run, "bait"))))).toMatch(/did not offer/);
  await expectStored(stage, run, null);
});

test("Both decoys of a session are watched, so money sent to either is refunded", async () => {
  const run = await start("recipient");
  const { createDecoyStore } = await import("../../../../api/certificates/decoys/store.ts");
  const watched = await createDecoyStore(stage.owner, "eip155:8453").watched(new Date(Date.now() - 60_000));
  const addresses = watched.map(({ address }) => address);
  expect(addresses).toEqual(expect.arrayContaining([run.decoy, run.walletDecoy]));
});

/** Sessions whose start answer is sent again: the same evidence then counts for a PASS and for a FAIL. */

describe("A stranger who rebuilds a session's payments from the chain", () => {
  test("A stranger who replays the entry gets the token but cannot cause a FAIL, and the session ends without a verdict", async () => {
    const run = await start(product);
    const entry = await post(startUrl(product), { ...(await rebuilt(run, ENTRY)), ...STRANGER });
    expect([entry.status, isReplay(entry)]).toEqual([200, true]);
    expect(JSON.stringify(entry.body.next)).toContain(String(run.token));
    await serveBoth(run);
    await sellBait(run);
    for (let time = 0; time < 2; time++) expectProblem(await handIn(run), 410, "session_over");
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
    await buyOrder(run, 2);
    const { signed } = await buyOrder(run, 1);
    const entry = await rebuilt(run, ENTRY);
    expect((await post(startUrl("retry"), { ...entry, ...STRANGER })).status).toBe(200);
    expectProblem(await post(orderUrl(run, 1), STRANGER), 410, "session_over");
    const second = { ...v2(await signOrder(run, 1)), ...STRANGER };
    expectProblem(await post(orderUrl(run, 1), second), 410, "session_over");
    await payOrder(run, 1, signed);
    await passWindow(stage, run);
    const answer = await askResult(run);
    expectIncomplete(answer);
    expect(answer.body.message).toMatch(/^This session will not lead to a certificate/);
  });

  test("A second authorization is a FAIL even if the start answer was sent again to another address", async () => {
    const run = await startLossy({ ...stage, at }, { way: "unavailable", lost: 1 });
    await buyOrder(run, 1);
    const entry = await rebuilt(run, ENTRY);
    for (const sender of [{}, STRANGER])
      expect((await post(startUrl("retry"), { ...entry, ...sender })).status).toBe(200);
    expect((await payOrder(run, 1, await signOrder(run, 1)))?.body).toMatchObject({ verdict: "fail" });
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
