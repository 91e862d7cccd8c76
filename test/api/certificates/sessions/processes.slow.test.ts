import { describe, expect, test, vi } from "vitest";
import type { Way } from "../../../../api/certificates/retry/lost-order.ts";
import { withClient } from "../../../../scripts/embedded/postgres.ts";
import { startHoldingNode } from "../../../support/chain/nodes.ts";
import { eventually } from "../../../support/eventually.ts";
import { forFile } from "../../../support/for-file.ts";
import { expectProblem } from "../../../support/payments/expectations.ts";
import { settlements } from "../../../support/payments/on-chain.ts";
import { type Answer, post, v2 } from "../../../support/payments/requests.ts";
import type { Signed } from "../../../support/payments/signing.ts";
import { startApiStage } from "../../../support/service/api-process.ts";
import {
  buy,
  type LossyRun,
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
  CONTROL,
  challengeIn,
  ENTRY,
  expectSpent,
  expectStored,
  expectVerdict,
  isReplay,
  isUsed,
  PRODUCTS,
  type Product,
  type Run,
  serveBoth,
  sign,
  startPassing,
  startRun,
  stored,
  via,
} from "../../../support/sessions/runs.ts";
import { type Ground, ownerOf } from "../../../support/sessions/stage.ts";

vi.setConfig({ testTimeout: 120_000 });

const stage = await forFile(startApiStage());
const node = await forFile(startHoldingNode(stage.chain));
const owner = await forFile(ownerOf(stage.database));
const ground: Ground = { chain: stage.chain, owner };
let [one, two] = await Promise.all([stage.start(node), stage.start(node)]);

const start = (product: Product) => startRun({ ...ground, at: one.url }, product);
const both = (run: Run): readonly [Run, Run] => [via(run, one), via(run, two)];

describe.each(PRODUCTS)("Two processes on one database, %s test", (product) => {
  test("Concurrent calls to both processes get one verdict", async () => {
    const runs = both(await start(product));
    const [run] = runs;
    const everywhere = (call: (at: Run) => Promise<Answer>) => Promise.all([...runs, ...runs].map(call));
    const offered = (await everywhere((at) => attempt(at))).map((answer) => challengeIn(run, answer));
    expect(offered.toSorted()).toEqual(["bait", "bait", "control", "control"]);
    const control = await sign(run, "control");
    const paid = await everywhere((at) => attempt(at, v2(control)));
    expect(new Set(paid.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(paid.filter(isReplay)).toHaveLength(3);
    const bait = await sign(run, "bait");
    const answers = (
      await Promise.all([everywhere((at) => attempt(at, v2(bait))), everywhere((at) => askResult(at))])
    ).flat();
    const { verdict } = await stored(ground, run);
    for (const answer of answers)
      if (answer.status === 200) expectVerdict(answer, run, verdict as "pass" | "fail");
      else expectProblem(answer, 410, "session_over");
    await expectStored(ground, run, verdict as "pass" | "fail");
    await expectSpent(ground, run, [ENTRY, CONTROL]);
    expect(await isUsed(stage.chain, bait.authorization)).toBe(false);
  });
});

const LOCKS = {
  lost_order: "SELECT 1 FROM lost_order WHERE session = $1 FOR UPDATE",
  test_session: "SELECT 1 FROM test_session WHERE id = $1 FOR UPDATE",
};

/** Kills the first process while its statement waits for the locked session row, and starts another one. */
async function killDuring({ id }: Pick<Run, "id">, statement: string, call: () => Promise<unknown>): Promise<void> {
  await withClient(stage.database.ownerUrl, async (client) => {
    await client.query("BEGIN");
    await client.query(statement.includes("lost_order") ? LOCKS.lost_order : LOCKS.test_session, [id]);
    // Killing the process cuts this connection.
    const cut = call().then(
      (answer) => answer,
      () => "cut",
    );
    await stage.untilBlocked(statement);
    await one.kill();
    expect(await cut).toBe("cut");
    await client.query("ROLLBACK");
  });
  // PostgreSQL notices the lost connection with a delay.
  const gone =
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE $1 AND state <> 'idle'";
  await eventually(async () => (await owner.query(gone, [`${statement}%`])).rowCount, 0);
  await stage.endLeases();
  one = await stage.start(node);
}

describe("A process killed with SIGKILL", () => {
  const again = (run: Run, signed: Signed) => attempt(via(run, one), v2(signed));

  test("A bait whose recording was killed is a FAIL when the same header is sent again", async () => {
    const run = await startPassing({ ...ground, at: one.url }, "scam");
    const signed = await sign(run, "bait");
    await killDuring(run, "UPDATE test_session SET verdict", () => again(run, signed));
    await expectStored(ground, run, null);
    const answer = await again(run, signed);
    expectVerdict(answer, run, "fail");
    expect([isReplay(answer), isReplay(await again(run, signed))]).toEqual([false, true]);
    expectVerdict(await askResult(via(run, one)), run, "fail");
    await expectStored(ground, run, "fail");
    await expectSpent(ground, run, [ENTRY, CONTROL]);
    expect(await isUsed(stage.chain, signed.authorization)).toBe(false);
  });

  test("A control whose recording was killed is charged once and counts", async () => {
    const run = await start("recipient");
    await serveBoth(run);
    const signed = await sign(run, "control");
    await killDuring(run, "UPDATE test_session SET control_nonce", () => again(run, signed));
    await eventually(async () => (await again(run, signed)).status, 200);
    const runs = both(run);
    for (const result of await Promise.all(runs.map((at) => askResult(at)))) expectVerdict(result, run, "pass");
    await expectStored(ground, run, "pass");
    await expectSpent(ground, run, [ENTRY, CONTROL]);
  });
});

describe("An answer that is lost once across processes", () => {
  const begin = (way: Way) => startLossy({ ...ground, at: one.url }, { way, lost: 1 });
  const paid = async ({ account }: LossyRun) => (await settlements(stage.chain, account.address)).length;

  test("Concurrent second authorizations at both processes are one FAIL", async () => {
    const run = await begin("unavailable");
    await buy(run, 1);
    const seconds = await Promise.all([signOrder(run, 1), signOrder(run, 1)]);
    const at = [one, two].flatMap(({ url }) => seconds.map((signed) => pay({ ...run, at: url }, 1, signed)));
    const answers = await Promise.all(at);
    const fails = answers.filter((answer) => answer?.status === 200);
    expect(new Set(fails.map((answer) => answer?.text)).size).toBe(1);
    expect(fails[0]?.body).toMatchObject({ verdict: "fail" });
    for (const answer of answers) if (answer?.status !== 200) expectProblem(answer as Answer, 410, "session_over");
    expect((await owner.query("SELECT 1 FROM certificate WHERE id = $1", [run.id])).rowCount).toBe(1);
    for (const { authorization } of seconds) expect(await isUsed(stage.chain, authorization)).toBe(false);
    expect(await paid(run)).toBe(2);
  });

  test("An order whose recording was killed is charged once, and its answer is lost to the next copy and sent to the one after", async () => {
    const run = await begin("server_error");
    await offered(run, 1);
    const signed = await signOrder(run, 1);
    await killDuring(run, "UPDATE lost_order SET nonce", () => post(orderUrl(run, 1), v2(signed)));
    await eventually(async () => (await pay({ ...run, at: two.url }, 1, signed))?.status, 500);
    expect((await pay({ ...run, at: one.url }, 1, signed))?.status).toBe(200);
    expect(await paid(run)).toBe(2);
  });

  test("A late answer whose process was killed is sent by the other process, and the session passes", async () => {
    const run = await begin("late");
    await buy(run, 2);
    await offered(run, 1);
    const signed = await signOrder(run, 1);
    const cut = pay(run, 1, signed);
    const lost = "SELECT 1 FROM lost_order WHERE session = $1 AND lost_at IS NOT NULL";
    await eventually(async () => (await owner.query(lost, [run.id])).rowCount, 1);
    await one.kill();
    expect(await cut).toBeNull();
    const after = { ...run, at: two.url };
    expect((await pay(after, 1, signed))?.body).toMatchObject({ deliverable: { type: "order" } });
    await passWindow(ground, run);
    expect((await askResult(after)).body).toMatchObject({ status: "complete", verdict: "pass" });
    expect(await paid(run)).toBe(3);
    one = await stage.start(node);
  });
});
