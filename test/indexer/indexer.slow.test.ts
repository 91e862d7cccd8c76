import { setTimeout as sleep } from "node:timers/promises";
import type { Address } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestChain, type TestChain } from "../support/chain/chain.ts";
import { startFaultyNode } from "../support/chain/nodes.ts";
import { replyTo } from "../support/chain/rpc.ts";
import { isAlive } from "../support/indexer/launched.ts";
import { type Actor, createActor, playHistory, SERVICE } from "./history.ts";
import {
  ageIndex,
  begin,
  CATCH_UP,
  caughtUp,
  DAY_MS,
  expectRecount,
  headOf,
  type Indexed,
  launch,
  nowOf,
  pruneClosely,
  runDrop,
  schemasOf,
  untilPaid,
} from "./indexed.ts";

// One chain with an index in each scope. Each test continues from the previous one.

let chain: TestChain;
let actor: Actor;
let days: { firstDay: number; lastDay: number };
let full: Indexed;
let selective: Indexed;
let all: readonly Indexed[];
/** A chain with another history. */
let second: TestChain;

const stranger = (n: number): Address => `0x${(0xdef000 + n).toString(16).padStart(40, "0")}`;

async function playBlocks(count: number): Promise<void> {
  for (let block = 0; block < count; block += 1) {
    for (let n = actor.dice.below(3); n >= 0; n -= 1) await actor.act();
    await chain.mine();
  }
}

const allCaughtUp = () => Promise.all(all.map((indexed) => caughtUp(indexed, chain)));

beforeAll(async () => {
  chain = await startTestChain({ mining: "manual" });
  actor = createActor(chain, 8453);
  days = await playHistory(chain, actor);
  all = await Promise.all([begin("full", chain), begin("selective", chain)]);
  [full, selective] = all as [Indexed, Indexed];
  await Promise.all(all.map(({ launched }) => launched.untilLogged("index ready")));
  await allCaughtUp();
}, 120_000);

afterAll(async () => {
  for (const { launched, pool } of all ?? []) {
    launched.closeInput();
    await Promise.all([launched.ended, pool.end()]);
  }
  await Promise.all([chain?.stop(), second?.stop()]);
});

describe("history", () => {
  test("Each scope's answers equal a recount at both edges of every 90-day window", async () => {
    const moments = Array.from({ length: 16 }, (_, i) => days.lastDay - i)
      .flatMap((day) => [day * DAY_MS, (day + 1) * DAY_MS - 1])
      .map((ms) => new Date(ms));
    for (const indexed of all) await expectRecount(indexed, moments, chain);
  });
});

describe("live", { timeout: 60_000 }, () => {
  test("A transfer is visible within 3 seconds of its block", async () => {
    const waits: number[] = [];
    for (let n = 0; n < 6; n += 1) {
      await actor.pay({ from: n, to: stranger(n), value: 1_000n });
      await chain.mine();
      waits.push(await untilPaid(all, stranger(n), chain));
    }
    // Checks the median, because other tests may use the processor.
    expect(waits.toSorted((a, b) => a - b)[3]).toBeLessThan(3_000);
  });

  test("A reorganization that removes a payment also removes it from the answers", async () => {
    const payee = stranger(30);
    for (const indexed of all) expect(await pruneClosely(indexed)).toBeGreaterThan(200);
    await playBlocks(2);
    await actor.pay({ from: 2, to: payee, value: 50_000n });
    await chain.mine();
    const now = new Date((await nowOf(chain)).getTime() + 60_000);
    for (const { index } of all)
      await expect.poll(async () => (await index.activity(payee, now))?.distinctCounterparties, CATCH_UP).toBe(1);
    await chain.client.request({ method: "anvil_reorg", params: [3, []] } as never);
    // The earlier position is visible only until the next poll, so the test cannot wait for it.
    for (const { index } of all)
      await expect.poll(async () => (await index.activity(payee, now))?.distinctCounterparties, CATCH_UP).toBe(0);
    await playBlocks(4);
    await allCaughtUp();
    for (const indexed of all) await expectRecount(indexed, [now], chain);
  });
});

/** Pays one stranger per block. Returns them by block. */
async function payStrangers(first: number): Promise<ReadonlyMap<number, Address>> {
  const paid = new Map<number, Address>();
  for (let n = first; n < first + 12; n += 1) {
    await actor.pay({ from: 0, to: stranger(n), value: 1_000n });
    await chain.mine();
    paid.set(await headOf(chain), stranger(n));
  }
  return paid;
}

/** Expects, while the last blocks are reverted and restored, that the position is never ahead of its rows. */
async function expectTruePositions(paid: ReadonlyMap<number, Address>): Promise<void> {
  const head = await headOf(chain);
  // Reads in the order in which Ponder replaces the views. The other order could deadlock.
  const there =
    "select coalesce(array_agg('0x' || encode(wallet, 'hex')), '{}') as there from live.wallet_day where '0x' || encode(wallet, 'hex') = any($1)";
  const text = `select there, block::int from (${there}) w cross join live.position`;
  for (let reached = 0; reached < head; await sleep(1)) {
    const { rows } = await full.pool.query(text, [[...paid.values()]]);
    reached = rows[0]?.block ?? 0;
    const within = [...paid].filter(([block]) => block <= reached).map(([, payee]) => payee);
    expect(rows[0]?.there, `at ${reached}`).toEqual(expect.arrayContaining(within));
  }
}

describe("faults", { timeout: 90_000 }, () => {
  test("After Ponder is killed, it is restarted on the same index, catches up, and counts nothing twice", async () => {
    const before = await payStrangers(50);
    await caughtUp(full, chain);
    await Promise.all(all.map(pruneClosely));
    for (const { launched } of all) process.kill(launched.ponderPid(), "SIGKILL");
    const paid = new Map([...before, ...(await payStrangers(62))]);
    await Promise.all([
      expectTruePositions(paid),
      ...all.map(({ launched }) => launched.untilLogged("ponder started", 2)),
    ]);
    await allCaughtUp();
    for (const indexed of all) {
      const [before, after] = indexed.launched.logged("ponder started");
      expect([after?.schema, after?.startBlock]).toEqual([before?.schema, before?.startBlock]);
      await expectRecount(indexed, [await nowOf(chain)], chain);
    }
  });

  test("A killed launcher leaves no Ponder behind", async () => {
    const ponder = selective.launched.ponderPid();
    selective.launched.kill("SIGKILL");
    await selective.launched.ended;
    await expect.poll(() => isAlive(ponder), CATCH_UP).toBe(false);
  });

  test("With a new service address it builds a new index, and the old one answers until the new one is ready", async () => {
    const [now, paid] = [await nowOf(chain), stranger(4)];
    const [old] = selective.launched.logged("ponder started");
    selective.launched = launch(selective, chain, { OWN_ADDRESSES: paid });
    const { launched, index } = selective;
    await launched.untilLogged("ponder started");
    const answers: unknown[] = [];
    for (; launched.logged("index ready").length === 0; await sleep(20))
      answers.push((await index.activity(paid, now))?.distinctCounterparties);
    expect(answers.length).toBeGreaterThan(10);
    expect(new Set(answers.slice(0, -10))).toEqual(new Set([1]));
    await caughtUp(selective, chain);
    selective.own = { [SERVICE]: 0, [paid]: 0 };
    await expectRecount(selective, [now], chain);
    // A reader keeps the old index's answer for 200 ms.
    await expect.poll(async () => (await index.activity(paid, now))?.distinctCounterparties, CATCH_UP).toBe(0);
    await ageIndex(selective, String(old?.schema));
    await launched.untilLogged("dropped a replaced index");
    expect(launched.logged("dropped a replaced index")).toEqual([expect.objectContaining({ dropped: old?.schema })]);
  });

  test("It ends, with Ponder, when its parent ends", async () => {
    const ponder = full.launched.ponderPid();
    full.launched.closeInput();
    expect(await full.launched.ended).toBe(0);
    expect(isAlive(ponder)).toBe(false);
  });

  test("On a node of another chain it logs the reason, waits, and drops nothing", async () => {
    second = await startTestChain({ mining: "manual" });
    await createActor(second, 84).pay({ from: 0, to: stranger(40), value: 1_000n });
    await second.mine(3);
    const before = await schemasOf(full);
    full.launched = launch(full, second);
    await full.launched.untilLogged("the indexer stopped and is restarting", 3);
    const reasons = full.launched.logged("the indexer stopped and is restarting").map(({ reason }) => reason);
    expect(reasons.join()).toMatch(/not from the node's chain|behind a block that is final in the index/);
    expect(full.launched.logged("ponder started")).toEqual([]);
    expect(await schemasOf(full)).toEqual(before);
    full.launched.closeInput();
    await full.launched.ended;
  });

  test("With a node that returns no block it waits and drops nothing", async () => {
    const node = await startFaultyNode(chain);
    node.become(async (call, pass) => {
      const isByNumber = call.method === "eth_getBlockByNumber" && call.params?.[0] !== "latest";
      return isByNumber ? replyTo(call, null) : pass(call);
    });
    const before = await schemasOf(full);
    full.launched = launch(full, { rpcUrl: node.url });
    await full.launched.untilLogged("the indexer stopped and is restarting", 2);
    expect(await schemasOf(full)).toEqual(before);
    node.become(null);
    await full.launched.untilLogged("index ready");
    expect(await schemasOf(full)).toEqual(before);
    full.launched.closeInput();
    await full.launched.ended;
    node.stop();
  });

  test("After a drop, another chain is indexed from scratch without the previous one's rows", async () => {
    expect(await runDrop(full, second)).toContain("Dropped: live_");
    full.launched = launch(full, second);
    await full.launched.untilLogged("index ready");
    await caughtUp(full, second);
    const now = await nowOf(second);
    expect(await full.index.activity(stranger(40), now)).toMatchObject({ distinctCounterparties: 1 });
    await expectRecount(full, [now, new Date(now.getTime() + 30 * DAY_MS), new Date(days.lastDay * DAY_MS)], second);
    full.launched.kill("SIGTERM");
    expect(await full.launched.ended).toBe(0);
  });

  test("npm run index:drop drops everything that the indexer made, but nothing that is in use", async () => {
    await selective.launched.untilLogged("index ready");
    expect(await runDrop(selective, chain)).toContain("Stop it first");
    expect(await runDrop(full, chain)).toContain("Dropped: live_");
    expect(await schemasOf(full)).toEqual([]);
    full.launched = launch(full, chain);
    await full.launched.untilLogged("index ready");
    await caughtUp(full, chain);
    await expectRecount(full, [await nowOf(chain)], chain);
  });
});
