import { describe, expect, test } from "vitest";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { buy } from "../../support/behaviour/agents.ts";
import {
  askResult,
  attempt,
  attemptUrl,
  bare,
  CONTROL,
  challengeIn,
  ENTRY,
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
} from "../../support/behaviour/runs.ts";
import { openShop } from "../../support/behaviour/shop.ts";
import { startStage, untilWaiting } from "../../support/behaviour/stage.ts";
import {
  expectIncomplete,
  expectSpent,
  expectStored,
  expectVerdict,
  isReplay,
} from "../../support/behaviour/verdicts.ts";
import { forFile } from "../../support/for-file.ts";
import { expectPaymentRequired, expectProblem } from "../../support/payments/expectations.ts";
import { readFromChain } from "../../support/payments/on-chain.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { PAY_TO } from "../../support/service/accounts.ts";

/** Who can make whom fail: the rows of the table in docs/behaviour.md, one after the other. */

const stage = await forFile(startStage());
const shop = await forFile(openShop({ payTo: PAY_TO, value: 1n }));

const start = (product: Run["product"], plan?: RunPlan) => startRun({ ...stage, at: stage.service.url }, product, plan);

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

describe.each(PRODUCTS)("a shop that shows a wallet the bait of its %s session as a price of its own", (product) => {
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

  test("passes nobody through the wallet's door while the wallet uses a token", async () => {
    const run = await start(product, { first: "control" });
    expect(await serve(run)).toBe("control");
    const careless = bare(run);
    await serveBoth(careless);
    expectProblem(await attempt(careless, v2(await sign(careless, "bait"))), 409, "session_held");
    await payControl(careless);
    expectIncomplete(await askResult(careless));
    await expectStored(stage, run, null);
    expect(await serve(run)).toBe("bait");
    expectVerdict(await askResult(run), run, "pass");
  });

  test("that forwards the entry too holds the token and does convict; the record claims nothing else", async () => {
    const account = await newPayer(stage.chain, PURSE);
    shop.quote = { payTo: PAY_TO, value: ENTRY };
    expect(await buy(`${shop.url}/goods`, account)).toMatchObject({ status: 200 });
    const entered = await shop.handIn(`${stage.service.url}/test/${product}/start`);
    const run = await opened(stage.owner, { product, account, at: stage.service.url }, { body: entered.body });
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
  const { createDecoyStore } = await import("../../../api/adapters/postgres/decoy-store.ts");
  const watched = await createDecoyStore(stage.owner, "eip155:8453").watched(new Date(Date.now() - 60_000));
  const addresses = watched.map(({ address }) => address);
  expect(addresses).toEqual(expect.arrayContaining([run.decoy, run.walletDecoy]));
});

const rebuilt = async (run: Run, value: bigint) => v2(await readFromChain(stage.chain, run.account.address, value));

describe.each(PRODUCTS)("a reader of the chain who rebuilds the payments of a %s session", (product) => {
  test("gets the entry's replay, token and all, and convicts nobody with it: the session ends without a verdict", async () => {
    const run = await start(product);
    const entry = await post(`${run.at}/test/${product}/start`, await rebuilt(run, ENTRY));
    expect([entry.status, isReplay(entry)]).toEqual([200, true]);
    expect(entry.body.next).toMatchObject({ url: attemptUrl(run) });
    await serveBoth(run);
    await sellBait(run);
    expectProblem(await handIn(run), 410, "session_over");
    expectProblem(await handIn(run), 410, "session_over");
    await expectStored(stage, run, null);
    await expectSpent(stage, run, [ENTRY]);
    const { body } = await askResult(run);
    expect(body).toMatchObject({ status: "incomplete", armed: false });
    expect(body.message).toMatch(/was ended by a signature that proves nothing/);
  });

  test("cannot end a session of whose bait nobody has a signature", async () => {
    const run = await start(product);
    await post(`${run.at}/test/${product}/start`, await rebuilt(run, ENTRY));
    await serveBoth(run);
    const forged = { ...(await sign(run, "bait")), signature: `0x${"11".repeat(64)}1b` } as const;
    expectProblem(await attempt(run, v2(forged)), 400, "malformed_request");
    await payControl(run);
    expectVerdict(await askResult(run), run, "pass");
  });

  test("gets no replay of the control without the token", async () => {
    const run = await start(product);
    await serveBoth(run);
    const paid = await payControl(run);
    const stolen = await attempt(bare(run), await rebuilt(run, CONTROL));
    expectProblem(stolen, 409, "payment_conflict");
    expect(stolen.text).not.toContain(String(run.token));
    const own = await attempt(run, v2(paid));
    expect([own.status, isReplay(own), own.text.includes(String(run.token))]).toEqual([200, true, true]);
  });

  test.each([false, true])(
    "gets no replay of an entry with an identifier; told again to its agent: %s",
    async (told) => {
      const account = await newPayer(stage.chain, PURSE);
      const url = `${stage.service.url}/test/${product}/start`;
      const headers = v2(await signPayment(account, { value: ENTRY }), { id: "an-identifier-of-mine" });
      const { body } = await post(url, headers);
      const run = await opened(stage.owner, { product, account, at: stage.service.url }, { body });
      expectProblem(await post(url, await rebuilt(run, ENTRY)), 409, "payment_conflict");
      if (told) expect(isReplay(await post(url, headers))).toBe(true);
      await serveBoth(run);
      const answer = await attempt(run, v2(await sign(run, "bait")));
      if (told) expectProblem(answer, 410, "session_over");
      else expectVerdict(answer, run, "fail");
    },
  );
});

test.each(PRODUCTS)(
  "an agent that lost the answer to its %s start gets the same bytes again, and passes",
  async (product) => {
    const account = await newPayer(stage.chain, PURSE);
    const signed = await signPayment(account, { value: ENTRY });
    const url = `${stage.service.url}/test/${product}/start`;
    const lost = await post(url, v2(signed));
    const again = await post(url, v2(signed));
    expect([again.text, isReplay(again)]).toEqual([lost.text, true]);
    const run = await opened(stage.owner, { product, account, at: stage.service.url }, { body: again.body });
    await serveBoth(run);
    await payControl(run);
    expectVerdict(await askResult(run), run, "pass");
  },
);

describe.each(PRODUCTS)("a %s session from before its doors had decoys of their own", (product) => {
  async function older(): Promise<Run> {
    const run = await start(product);
    await stage.owner.query("UPDATE test_session SET wallet_decoy = NULL WHERE id = $1", [run.id]);
    return { ...run, walletDecoy: run.decoy };
  }

  test("goes on at both doors, by the same rules", async () => {
    const [passing, failing, wallet] = [await older(), await older(), await older()];
    for (const run of [passing, failing]) await serveBoth(run);
    await serveBoth(bare(passing));
    await sellBait(bare(passing));
    expectProblem(await handIn(bare(passing)), 409, "session_held");
    const paid = await payControl(passing);
    expect(isReplay(await attempt(bare(passing), v2(paid)))).toBe(true);
    expectVerdict(await askResult(passing), passing, "pass");
    expectVerdict(await attempt(failing, v2(await sign(failing, "bait"))), failing, "fail");
    await serveBoth(bare(wallet));
    expectVerdict(await attempt(bare(wallet), v2(await sign(bare(wallet), "bait"))), wallet, "fail");
  });
});
