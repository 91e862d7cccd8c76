import { describe, expect, test } from "vitest";
import { withClient } from "../../../../scripts/embedded/postgres.ts";
import { forFile } from "../../../support/for-file.ts";
import { expectPaymentRequired, expectProblem } from "../../../support/payments/expectations.ts";
import { type Answer, send, v2 } from "../../../support/payments/requests.ts";
import { newPayer } from "../../../support/payments/signing.ts";
import { PAY_TO } from "../../../support/service/environment.ts";
import { buy } from "../../../support/sessions/agents.ts";
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
