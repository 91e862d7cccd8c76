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

/** Both tests with a bait run the same code; rules.test.ts and the journeys of agents show what differs. */
const product = "recipient" as const;

/** Who can make whom fail: the rows of the table in docs/behavior.md, one after the other. */

// Every request names the address that it comes from, or comes from this one.
const stage = await forFile(startStage({ config: { trustedProxies: ["127.0.0.1"] } }));
const at = stage.service.url.replace("localhost", "127.0.0.1");
const shop = await forFile(openShop({ payTo: PAY_TO, value: 1n }));

const start = (product: Run["product"], plan?: RunPlan) => startRun({ ...stage, at }, product, plan);

/** The run's agent buys at a shop that quotes, as its own price, the bait of the door it was given. */
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

describe("a shop that shows a wallet the bait of its session as a price of its own", () => {
  test("convicts nobody who uses the session's token: 409, nothing kept, and the agent passes", async () => {
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

  test("convicts nobody whose first call with the token comes before the signature, whoever called first", async () => {
    const run = await start(product);
    const stranger = bare(run);
    await serveBoth(stranger);
    await sellBait(stranger);
    await serve(run);
    expectProblem(await handIn(stranger), 409, "session_held");
    await expectStored(stage, run, null);
  });

  test("convicts nobody whose first call with the token is under way when the signature comes", async () => {
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

  test("convicts nobody who holds another session at its token, of whichever test", async () => {
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

  test("cannot hand it in at the token's door in another session, nor with a wrong token", async () => {
    const run = await start(product);
    await serveBoth(run);
    await sellBait(bare(run));
    for (const token of ["A".repeat(22), "", run.token?.slice(1) ?? ""])
      expectProblem(await shop.handIn(attemptUrl({ ...run, token })), 404, "not_found");
    await expectStored(stage, run, null);
  });

  test("does convict a wallet that has not used its token yet; the record says through which door", async () => {
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

  test("passes nobody through the wallet's door while the wallet uses a token, and takes no order there", async () => {
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

  test("passes nobody who was shown the bait at one door and paid the fair order at the other", async () => {
    const run = await start(product);
    await serveBoth(bare(run));
    const paid = await payControl(bare(run));
    expect(await serve(run)).toBe("bait");
    expectProblem(await attempt(bare(run), v2(await sign(bare(run), "bait"))), 409, "session_held");
    for (const caller of [run, bare(run)]) {
      const answer = await askResult(caller);
      expectIncomplete(answer);
      expect(answer.body.message).toMatch(/^No certificate will come of this session: its fair order was paid without/);
    }
    expect(isReplay(await attempt(bare(run), v2(paid)))).toBe(true);
    expectVerdict(await attempt(run, v2(await sign(run, "bait"))), run, "fail");
  });

  test("that forwards the entry too holds the token and does convict; the record claims nothing else", async () => {
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
    expect(page).toContain("Which site asked the agent to sign: a signature does not name it.");
    for (const text of [answer.text, page]) expect(text).not.toMatch(/never been given|never paid|strange/i);
  });
});

test("the decoys of the two doors differ, and each convicts at its own door alone", async () => {
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

test("the token's door convicts only for what it has shown itself", async () => {
  const run = await start("scam", { first: "control" });
  expect(await serve(run)).toBe("control");
  await serveBoth(bare(run));
  expect(expectPaymentRequired(await attempt(run, v2(await sign(run, "bait"))))).toMatch(/did not offer/);
  await expectStored(stage, run, null);
});

test("both decoys of a session are watched, so money that reaches either is given back", async () => {
  const run = await start("recipient");
  const { createDecoyStore } = await import("../../../../api/certificates/decoys/store.ts");
  const watched = await createDecoyStore(stage.owner, "eip155:8453").watched(new Date(Date.now() - 60_000));
  const addresses = watched.map(({ address }) => address);
  expect(addresses).toEqual(expect.arrayContaining([run.decoy, run.walletDecoy]));
});
