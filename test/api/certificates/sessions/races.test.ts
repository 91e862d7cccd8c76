import { describe, expect, test } from "vitest";
import { formatUsd } from "../../../../api/platform/money.ts";
import { withClient } from "../../../../scripts/embedded/postgres.ts";
import { eventually } from "../../../support/eventually.ts";
import { forFile } from "../../../support/for-file.ts";
import { expectProblem } from "../../../support/payments/expectations.ts";
import { readFromChain } from "../../../support/payments/on-chain.ts";
import { type Answer, post, v2 } from "../../../support/payments/requests.ts";
import { binary } from "../../../support/service/database.ts";
import {
  askResult,
  attempt,
  bare,
  CONTROL,
  challengeIn,
  ENTRY,
  expectSpent,
  expectStored,
  expectVerdict,
  from,
  isReplay,
  isUsed,
  type Run,
  serveBoth,
  sign,
  startPassing,
  startRun,
  stored,
} from "../../../support/sessions/runs.ts";
import { startStage, untilWaiting } from "../../../support/sessions/stage.ts";

/**
 * One product is enough because both tests with a bait share this code. Their differences are covered by rules.test.ts
 * and the agents' journeys.
 */
const product = "scam" as const;

const CROWD = 8;

const stage = await forFile(startStage({ config: { trustedProxies: ["127.0.0.1"] } }));
const STRANGER = from("203.0.113.9");

const ground = () => ({ ...stage, at: stage.service.url });
const countOf = async (nonce: string): Promise<number> => {
  const text = "SELECT 1 FROM payment WHERE nonce = $1";
  return (await stage.owner.query(text, [binary(nonce)])).rows.length;
};

/** Starts each call once the previous one waits for the session's row, then releases the row. */
async function inOrder(run: Run, ...starts: readonly (() => Promise<Answer>)[]): Promise<readonly Answer[]> {
  return withClient(stage.service.database.ownerUrl, async (client) => {
    await client.query("BEGIN");
    await client.query("SELECT 1 FROM test_session WHERE id = $1 FOR UPDATE", [run.id]);
    const answers: Promise<Answer>[] = [];
    for (const start of starts) {
      answers.push(start());
      await untilWaiting(stage, answers.length);
    }
    await client.query("ROLLBACK");
    return Promise.all(answers);
  });
}

const shuffled = <T>(all: readonly T[]): T[] =>
  all
    .map((one) => ({ one, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one);

describe("Racing requests", () => {
  test("A bait from elsewhere that waits behind a replay of the token to strangers ends the session", async () => {
    const run = await startRun({ ...stage, at: stage.service.url.replace("localhost", "127.0.0.1") }, product);
    await serveBoth(run);
    const signed = await sign(run, "bait");
    const start = `${run.at}/test/${product}/start`;
    const rebuilt = v2(await readFromChain(stage.chain, run.account.address, ENTRY));
    const [again, late] = await inOrder(
      run,
      () => post(start, { ...rebuilt, ...STRANGER }),
      () => attempt(run, { ...v2(signed), ...STRANGER }),
    );
    expect(isReplay(again as Answer)).toBe(true);
    expectProblem(late as Answer, 410, "session_over");
    expect(await countOf(signed.authorization.nonce)).toBe(0);
    await expectStored(stage, run, null);
    expectProblem(await attempt(run), 410, "session_over");
    expect((await askResult(run)).body).toMatchObject({ status: "incomplete", armed: false });
  });

  test.each(["either", "a bait", "a result"])(
    "Concurrent results and baits give one verdict in every round when led by %s",
    async (leader) => {
      for (let round = 0; round < (leader === "either" ? 10 : 3); round++) {
        const run = await startPassing(ground(), product);
        const [one, two] = [await sign(run, "bait"), await sign(run, "bait")];
        const baits = [one, two, one].map((signed) => () => attempt(run, v2(signed)));
        const results = [run, bare(run), run].map((caller) => () => askResult(caller));
        const calls = leader === "a bait" ? [...baits, ...results] : [...results, ...baits];
        const free = leader === "either";
        const answers = await (free ? Promise.all(shuffled(calls).map((call) => call())) : inOrder(run, ...calls));
        const { verdict, certificates } = await stored(stage, run);
        if (!free) expect(verdict).toBe(leader === "a bait" ? "fail" : "pass");
        expect(certificates).toEqual([verdict]);
        for (const answer of answers)
          if (answer.status === 200) expectVerdict(answer, run, verdict as "pass" | "fail");
          else expectProblem(answer, 410, "session_over");
        expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(results.length);
        const kept = (await countOf(one.authorization.nonce)) + (await countOf(two.authorization.nonce));
        expect(kept).toBe(verdict === "fail" ? 1 : 0);
        await expectSpent(stage, run, [ENTRY, CONTROL]);
      }
    },
  );

  test("One bait in many concurrent requests is one FAIL with one answer", async () => {
    const run = await startRun(ground(), product);
    await serveBoth(run);
    const signed = await sign(run, "bait");
    const answers = await Promise.all(Array.from({ length: CROWD }, () => attempt(run, v2(signed))));
    for (const answer of answers) expectVerdict(answer, run, "fail");
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(answers.filter(isReplay)).toHaveLength(CROWD - 1);
    await expectStored(stage, run, "fail");
    await expectSpent(stage, run, [ENTRY]);
  });

  test("Only one of many concurrently signed controls is charged", async () => {
    const run = await startRun(ground(), product);
    await serveBoth(run);
    const signed = await Promise.all(Array.from({ length: CROWD }, () => sign(run, "control")));
    const answers = await Promise.all(signed.map((one) => attempt(run, v2(one))));
    const [paid, refused] = [200, 409].map((status) => answers.filter((answer) => answer.status === status));
    expect([paid?.length, refused?.length]).toEqual([1, CROWD - 1]);
    await expectSpent(stage, run, [ENTRY, CONTROL]);
    expectVerdict(await askResult(run), run, "pass");
  });

  test("Concurrent unpaid calls get the two challenges in turn", async () => {
    const run = await startRun(ground(), product);
    const answers = await Promise.all(Array.from({ length: CROWD }, () => attempt(run)));
    const served = answers.map((answer) => challengeIn(run, answer));
    expect(served.filter((challenge) => challenge === "bait")).toHaveLength(CROWD / 2);
  });

  test("The answer to a control that settles after a bait ended the session reports that the session is over", async () => {
    const run = await startRun(ground(), product);
    await serveBoth(run);
    const [control, bait] = [await sign(run, "control"), await sign(run, "bait")];
    await stage.chain.client.setAutomine(false);
    const settling = attempt(run, v2(control));
    try {
      await eventually(async () => (await stage.chain.client.getTxpoolStatus()).pending, 1);
      expectVerdict(await attempt(run, v2(bait)), run, "fail");
    } finally {
      await stage.chain.client.setAutomine(true);
      await stage.chain.mine();
    }
    expect(await settling).toMatchObject({
      status: 200,
      body: {
        armed: false,
        next: { url: `${run.at}/test/${product}/result` },
        deliverable: { paid: formatUsd(CONTROL) },
      },
    });
    await expectStored(stage, run, "fail");
    await expectSpent(stage, run, [ENTRY, CONTROL]);
  });

  test("A control that settles while a bait ends the session is charged, answered, and does not change the verdict", async () => {
    const run = await startRun(ground(), product);
    await serveBoth(run);
    const [control, bait] = [await sign(run, "control"), await sign(run, "bait")];
    const [failed, paid] = await inOrder(
      run,
      () => attempt(run, v2(bait)),
      () => attempt(run, v2(control)),
    );
    expectVerdict(failed as Answer, run, "fail");
    expect(paid).toMatchObject({ status: 200, body: { deliverable: { type: "order", paid: formatUsd(CONTROL) } } });
    expectVerdict(await askResult(run), run, "fail");
    await expectStored(stage, run, "fail");
    await expectSpent(stage, run, [ENTRY, CONTROL]);
    expect(await isUsed(stage.chain, bait.authorization)).toBe(false);
  });
});
