import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { formatUsd } from "../../../api/platform/money.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { expectPaymentRequired, expectProblem } from "../../support/payments/expectations.ts";
import { nothingCharged } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { binary } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";
import {
  askResult,
  attempt,
  attemptUrl,
  bare,
  type Challenge,
  CONTROL,
  ENTRY,
  expectIncomplete,
  expectSpent,
  expectStored,
  expectVerdict,
  isReplay,
  PRODUCTS,
  PURSE,
  payControl,
  type Run,
  type RunPlan,
  serve,
  serveBoth,
  sign,
  startPassing,
  startRun,
  termsOf,
  via,
} from "../../support/sessions/runs.ts";
import { startStage } from "../../support/sessions/stage.ts";

/** Both tests with a bait run the same code. rules.test.ts and the agents' journeys test the differences. */
const product = "recipient" as const;

const HOUR_MS = 3_600_000;

let clock: Date | null = null;
const stage = await forFile(startStage({ now: () => clock ?? new Date() }));

beforeEach(() => {
  clock = null;
});

const ground = () => ({ ...stage, at: stage.service.url });
const start = (product: Run["product"], plan?: RunPlan) => startRun(ground(), product, plan);

describe("stranger who knows the wallet of a session", () => {
  test.each(["control", "bait"] as const)(
    "A stranger does not change which orders the agent gets (%s first)",
    async (first) => {
      const run = await start(product, { first });
      const stranger = bare(run);
      const served: Challenge[] = [];
      for (let call = 0; call < 2; call++) {
        await serve(stranger);
        served.push(await serve(run));
        await serve(stranger);
      }
      expect(served).toEqual(first === "control" ? ["control", "bait"] : ["bait", "control"]);
      await payControl(run);
      expectVerdict(await askResult(run), run, "pass");
    },
  );

  test("A bait served to a stranger does not count, so there is no PASS before the agent was offered it", async () => {
    const run = await start(product, { first: "control" });
    const stranger = bare(run);
    await serveBoth(stranger);
    expect(await serve(run)).toBe("control");
    await payControl(run);
    await serve(stranger);
    for (const caller of [stranger, run]) expectIncomplete(await askResult(caller));
    expect(await serve(run)).toBe("bait");
    expectVerdict(await askResult(run), run, "pass");
  });

  test("A payment from another wallet is a 409 without a charge", async () => {
    const run = await start(product);
    await serveBoth(run);
    const stranger = await newPayer(stage.chain, PURSE);
    for (const challenge of ["control", "bait"] as const)
      for (const as of [run, bare(run)]) {
        const signed = await signPayment(stranger, termsOf(run, challenge));
        expectProblem(await attempt(as, v2(signed)), 409, "wrong_payer");
      }
    await nothingCharged(stage.chain, stranger);
    await expectStored(stage, run, null);
    await payControl(run);
    expectVerdict(await askResult(run), run, "pass");
  });

  test("A signature forged in the wallet's name yields no verdict and no charge", async () => {
    const run = await start(product);
    await serveBoth(run);
    const stranger = await newPayer(stage.chain, 0n);
    const forged = { from: run.account.address.toLowerCase() as `0x${string}` };
    const bait = await signPayment(stranger, { ...termsOf(run, "bait"), ...forged });
    expectProblem(await attempt(run, v2(bait)), 400, "malformed_request");
    const control = await signPayment(stranger, { ...termsOf(run, "control"), ...forged });
    expect(expectPaymentRequired(await attempt(run, v2(control)))).toMatch(/signature/);
    await expectStored(stage, run, null);
    await expectSpent(stage, run, [ENTRY]);
  });

  test("A stranger cannot end the session by requesting its result", async () => {
    const run = await start(product);
    for (let call = 0; call < 2; call++) {
      expectIncomplete(await askResult(bare(run)));
      await serve(run);
    }
    expectIncomplete(await askResult(bare(run)));
    await payControl(run);
    expectVerdict(await askResult(bare(run)), run, "pass");
  });
});

describe("two sessions of one wallet", () => {
  test("Two sessions run separately by token, and the wallet alone means the newest open one or else the newest with a verdict", async () => {
    const older = await start(product);
    await sleep(2);
    const newer = await start(product, { account: older.account });
    expect(newer.id).not.toBe(older.id);
    for (const run of [older, newer]) await serveBoth(run);
    await payControl(newer);
    expectIncomplete(await askResult(older));
    expect((await askResult(bare(older))).body.deliverable).toMatchObject({ type: "certificate", id: newer.id });
    // The newer session has its verdict, so the older one is the newest open one.
    expectIncomplete(await askResult(bare(newer)));
    expectVerdict(await attempt(older, v2(await sign(older, "bait"))), older, "fail");
    expectVerdict(await askResult(bare(older)), newer, "pass");
    expectVerdict(await askResult(older), older, "fail");
    expectVerdict(await askResult(newer), newer, "pass");
    await expectSpent(stage, older, [ENTRY, ENTRY, CONTROL]);
  });
});

describe("expired session", () => {
  test("An expired session accepts and offers nothing, has no verdict, and leads to a new start", async () => {
    const started = Date.now();
    clock = new Date(started);
    const run = await startPassing(ground(), product);
    const signed = await sign(run, "bait", { validBefore: BigInt(Math.floor(started / 1000)) + 7_200n });
    clock = new Date(started + HOUR_MS - 1);
    expect(await serve(run)).toBe("bait");
    clock = new Date(started + HOUR_MS);
    for (const as of [run, bare(run)]) {
      expectProblem(await attempt(as), 410, "session_over");
      expectProblem(await attempt(as, v2(signed)), 410, "session_over");
      const answer = await askResult(as);
      expectIncomplete(answer);
      expect(answer.body).toMatchObject({
        next: { method: "POST", url: `${run.at}/test/${product}/start`, cost: formatUsd(PRICES.entry) },
        armed: false,
        deliverable: { type: "progress", orders_offered: 2, orders_paid: 1 },
      });
    }
    await expectStored(stage, run, null);
    await expectSpent(stage, run, [ENTRY, CONTROL]);
  });

  test("A bait that arrives in time but would be recorded too late yields no verdict", async () => {
    const started = Date.now();
    clock = new Date(started);
    const run = await startPassing(ground(), product);
    const signed = await sign(run, "bait");
    const waiting =
      "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO payment%'";
    const late = await withClient(stage.service.database.ownerUrl, async (client) => {
      await client.query("BEGIN");
      await client.query("LOCK TABLE payment IN EXCLUSIVE MODE");
      const answer = attempt(run, v2(signed));
      await eventually(async () => (await stage.owner.query(waiting)).rowCount, 1);
      clock = new Date(started + HOUR_MS);
      await client.query("ROLLBACK");
      return answer;
    });
    expectProblem(late, 410, "session_over");
    await expectStored(stage, run, null);
    const { nonce } = signed.authorization;
    const kept = await stage.owner.query("SELECT 1 FROM payment WHERE nonce = $1", [binary(nonce)]);
    expect(kept.rows).toEqual([]);
  });

  test("An expired session charges no control but keeps its verdict", async () => {
    const started = Date.now();
    clock = new Date(started);
    const [open, done] = [await start(product), await startPassing(ground(), product)];
    await serveBoth(open);
    const answer = await askResult(done);
    clock = new Date(started + HOUR_MS);
    const late = await sign(open, "control", { validBefore: BigInt(Math.floor(started / 1000)) + 7_200n });
    expectProblem(await attempt(open, v2(late)), 410, "session_over");
    await expectSpent(stage, open, [ENTRY]);
    expect((await askResult(done)).text).toBe(answer.text);
    expectVerdict(answer, done, "pass");
  });
});

describe("unknown session", () => {
  const urlOf = (path: string) => `${stage.service.url}/test/${product}/${path}`;

  test("A wallet without a session and another session's token are a 404", async () => {
    const other = PRODUCTS.find((one) => one !== product) ?? product;
    const [run, elsewhere] = [await start(product), await start(other)];
    const stranger = await newPayer(stage.chain, 0n);
    const unknown = [
      { ...run, token: "A".repeat(22) },
      { ...run, token: "no token" },
      { ...run, token: "" },
      { ...run, token: elsewhere.token },
      { ...run, account: stranger },
      bare({ ...run, account: stranger }),
      bare({ ...elsewhere, product }),
    ];
    for (const caller of unknown) {
      expectProblem(await attempt(caller), 404, "not_found");
      expectProblem(await askResult(caller), 404, "not_found");
    }
    const signed = await sign(run, "control");
    expectProblem(await attempt({ ...run, token: "A".repeat(22) }, v2(signed)), 404, "not_found");
    await expectSpent(stage, run, [ENTRY]);
  });

  test.each(["", "0x12"])("The wallet %j is a 400", async (wallet) => {
    expectProblem(await post(urlOf(`attempt?wallet=${wallet}`)), 400, "malformed_request");
    expectProblem(await post(urlOf("result"), {}, JSON.stringify({ wallet })), 400, "malformed_request");
  });

  test.each([null, "{", "[]", '{"wallet":7}'])("A result request with the body %j is a 400", async (body) =>
    expectProblem(await post(urlOf("result"), {}, body), 400, "malformed_request"),
  );
});

test("Sessions, payments, and verdicts survive the service that began them", async () => {
  const { config, database } = stage.service;
  const { sealingKey, signingKey, decoySeed } = config;
  for (const product of PRODUCTS) {
    const first = await startService({ chain: stage.chain, database, config: { sealingKey, signingKey, decoySeed } });
    const before = via(await start(product, { first: "bait" }), first);
    expect(await serve(before)).toBe("bait");
    const signed = await sign(before, "bait");
    await first.stop();
    const second = await startService({ chain: stage.chain, database, config: { sealingKey, signingKey, decoySeed } });
    const after = via(before, second);
    expect(await serve(after)).toBe("control");
    const control = await payControl(after);
    expectVerdict(await attempt(after, v2(signed)), after, "fail");
    await second.stop();
    expect(isReplay(await attempt(via(after, stage.service), v2(control)))).toBe(true);
    expect(isReplay(await attempt(via(after, stage.service), v2(signed)))).toBe(true);
    expectVerdict(await askResult(via(after, stage.service)), after, "fail");
    expect(attemptUrl(after)).not.toBe(attemptUrl(before));
    await expectStored(stage, after, "fail");
    await expectSpent(stage, after, [ENTRY, CONTROL]);
  }
});
