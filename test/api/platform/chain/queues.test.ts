import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createBatchQueue } from "../../../../api/payments/settle/batching-chain.ts";
import { type BatchLimits, createBatcher } from "../../../../api/platform/chain/batcher.ts";
import { createFairQueue } from "../../../../api/platform/chain/pace.ts";
import { networkOf } from "../../../../api/platform/http/request.ts";
import { createWakeUp } from "../../../../api/platform/jobs/run-jobs.ts";
import { noPlace } from "../../../../api/platform/relayer/places.ts";

describe("Batched work", () => {
  /** A batcher whose groups end only when the test calls `end`. */
  function traced(terms: Partial<BatchLimits> = {}) {
    const groups: { readonly items: readonly number[]; readonly end: () => void }[] = [];
    const work = (items: readonly number[]) =>
      new Promise<readonly number[]>((done, fail) => {
        const end = () => (items.includes(13) ? fail(new Error("13")) : done(items.map((item) => item * 10)));
        groups.push({ items, end });
      });
    return { groups, join: createBatcher(work, { most: 4, underWay: 2, waitMs: 60_000, ...terms }) };
  }

  afterEach(() => vi.useRealTimers());

  const shown = (groups: ReturnType<typeof traced>["groups"]) => groups.map(({ items }) => items);

  test("Items that arrive in one turn form a group that starts immediately, and later items wait for it", async () => {
    const { groups, join } = traced();
    const answers = [1, 2].map(join);
    await sleep(5);
    const later = [3, 4].map(join);
    await sleep(5);
    expect(shown(groups)).toEqual([[1, 2]]);
    groups[0]?.end();
    expect(await Promise.all(answers)).toEqual([10, 20]);
    await sleep(5);
    expect(shown(groups)).toEqual([
      [1, 2],
      [3, 4],
    ]);
    groups[1]?.end();
    expect(await Promise.all(later)).toEqual([30, 40]);
  });

  test("A full group starts immediately while fewer than `underWay` groups run", async () => {
    const { groups, join } = traced();
    join(0);
    await sleep(5);
    for (let item = 1; item <= 9; item++) join(item);
    await sleep(5);
    expect(shown(groups)).toEqual([[0], [1, 2, 3, 4]]);
    groups[1]?.end();
    await sleep(5);
    expect(shown(groups)).toEqual([[0], [1, 2, 3, 4], [5, 6, 7, 8]]);
  });

  test("An item waits at most `waitMs`, even if another group never ends", async () => {
    const { groups, join } = traced({ waitMs: 30, underWay: 3 });
    join(0);
    await sleep(5);
    join(1);
    await expect.poll(() => shown(groups), { timeout: 5_000 }).toEqual([[0], [1]]);
    join(2);
    await expect.poll(() => shown(groups), { timeout: 5_000 }).toEqual([[0], [1], [2]]);
  });

  test("A failure affects only its own group", async () => {
    const { groups, join } = traced();
    const bad = [13, 1].map(join);
    await sleep(5);
    const good = join(2);
    groups[0]?.end();
    await expect(Promise.allSettled(bad)).resolves.toMatchObject([{ status: "rejected" }, { status: "rejected" }]);
    await sleep(5);
    groups[1]?.end();
    expect(await good).toBe(20);
  });
});

describe("The batch queue", () => {
  beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "performance"] }));
  afterEach(() => vi.useRealTimers());

  /** A queue whose groups end and whose blocks arrive under the test's control. */
  function traced() {
    const groups: { readonly items: readonly number[]; readonly end: (problem?: Error) => void }[] = [];
    const blocks: (() => void)[] = [];
    const work = (items: readonly number[]) =>
      new Promise<readonly (Error | null)[]>((done) => {
        groups.push({ items, end: (problem) => done(items.map(() => problem ?? null)) });
      });
    const nextBlock = () => new Promise<void>((come) => blocks.push(come));
    const join = createBatchQueue(work, { most: 3, waitMs: 200, nextBlock });
    const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
    return { groups, blocks, join, pass, shown: () => groups.map(({ items }) => items) };
  }

  test("The first payment is sent immediately, and others wait for it, for a full batch, or for 200 ms", async () => {
    const { groups, join, pass, shown } = traced();
    const first = join(0);
    await pass(1);
    for (const item of [1, 2, 3, 4]) void join(item);
    await pass(1);
    expect(shown()).toEqual([[0], [1, 2, 3]]);
    await pass(197);
    expect(shown()).toHaveLength(2);
    await pass(5);
    expect(shown()[2]).toEqual([4]);
    groups[0]?.end();
    expect(await first).toBeNull();
  });

  test("A payment without a slot is sent with later payments after the next block", async () => {
    const { groups, blocks, join, pass, shown } = traced();
    const first = join(0);
    await pass(1);
    groups[0]?.end(noPlace("batch"));
    await pass(1);
    const second = join(1);
    await pass(1_000);
    expect(shown()).toEqual([[0]]);
    blocks[0]?.();
    await pass(1);
    expect(shown()).toEqual([[0], [0, 1]]);
    groups[1]?.end();
    expect(await Promise.all([first, second])).toEqual([null, null]);
  });

  test("A payment without a slot is given up after four seconds, and its neighbor is tried again", async () => {
    const { groups, blocks, join, pass, shown } = traced();
    const early = join(0);
    await pass(1);
    groups[0]?.end(noPlace("batch"));
    await pass(3_998);
    void join(1);
    blocks[0]?.();
    await pass(2);
    groups[1]?.end(noPlace("batch"));
    expect(await early).toMatchObject({ because: "no place" });
    blocks[1]?.();
    await pass(1);
    expect(shown()).toEqual([[0], [0, 1], [1]]);
  });

  test("Work that fails as a whole fails for each of its payments", async () => {
    const problems = createBatchQueue<number>(() => Promise.reject(new Error("away")), {
      most: 3,
      waitMs: 200,
      nextBlock: async () => undefined,
    });
    const both = Promise.all([problems(0), problems(1)]);
    await vi.advanceTimersByTimeAsync(1);
    expect(await both).toEqual([new Error("away"), new Error("away")]);
  });
});

describe("Wake-ups", () => {
  /** Waits until everything that needs no timer has run. */
  const turns = () => new Promise((done) => setImmediate(done));
  const AN_HOUR = 3_600_000;

  test("A wait ends with the wake-up and not before", async () => {
    const wakeUp = createWakeUp();
    let isOver = false;
    const pause = wakeUp.wait(AN_HOUR).then(() => {
      isOver = true;
    });
    await turns();
    expect(isOver).toBe(false);
    wakeUp.wake();
    await pause;
  });

  test("Wake-ups without a waiter end exactly the next wait", async () => {
    const wakeUp = createWakeUp();
    wakeUp.wake();
    wakeUp.wake();
    await wakeUp.wait(AN_HOUR);
    let isOver = false;
    const pause = wakeUp.wait(AN_HOUR).then(() => {
      isOver = true;
    });
    await turns();
    expect(isOver).toBe(false);
    wakeUp.wake();
    await pause;
  });
});

describe("The fair queue", () => {
  // A client with many requests waits for its own and does not delay other clients and networks.

  const OURS = "ours";
  /** Returns this many clients of one network. */
  const crowd = (addresses: number) => Array.from({ length: addresses }, (_, host) => `198.51.100.${host % 256}`);

  test.each([
    ["198.51.100.7", "198.51.100.0/24"],
    ["198.51.100.255", "198.51.100.0/24"],
    ["198.51.10.7", "198.51.10.0/24"],
    ["2001:db8:1:2::/64", "2001:db8:1::/48"],
    ["2001:db8:1:ffff::/64", "2001:db8:1::/48"],
    ["2001:db8:2:2::/64", "2001:db8:2::/48"],
    ["unknown", "unknown"],
    ["", ""],
  ])("The client %s belongs to the network %s", (client, network) => {
    expect(networkOf(client)).toBe(network);
  });

  test("Networks take turns, and within a network its clients take turns", () => {
    const queue = createFairQueue<string>(100);
    for (const [item, client] of [
      ["a1", "10.0.0.1"],
      ["a2", "10.0.0.1"],
      ["a3", "10.0.0.1"],
      ["b1", "10.0.0.2"],
      ["c1", "10.0.9.1"],
      ["c2", "10.0.9.1"],
    ] as const)
      expect(queue.put(item, client)).toBeNull();
    expect(queue.take(5)).toEqual(["a1", "c1", "b1", "c2", "a2"]);
    expect(queue.size()).toBe(1);
    expect(queue.take(5)).toEqual(["a3"]);
    expect(queue.take(5)).toEqual([]);
  });

  test("Paid requests come first and are never refused, and leave a fifth of a round to unpaid ones", () => {
    const queue = createFairQueue<string>(10);
    for (let item = 0; item < 10; item++) queue.put(`free ${item}`, "10.0.0.1");
    for (let item = 0; item < 500; item++) expect(queue.put(`paid ${item}`, null)).toBeNull();
    const round = queue.take(10);
    expect(round.slice(0, 8)).toEqual(Array.from({ length: 8 }, (_, item) => `paid ${item}`));
    expect(round.slice(8)).toEqual(["free 0", "free 1"]);
    for (let rounds = 0; rounds < 4; rounds++) queue.take(10);
    expect(queue.take(10).every((item) => item.startsWith("paid"))).toBe(true);
  });

  test.each([
    ["one client", Array.from({ length: 300 }, () => "203.0.113.5")],
    ["many addresses of a /24", crowd(300)],
    ["many /64 of a /48", Array.from({ length: 300 }, (_, net) => `2001:db8:1:${net.toString(16)}::/64`)],
  ])("In a flood by %s, the newest requests are displaced and all other clients are in the next round", (_, flood) => {
    const queue = createFairQueue<string>(200);
    const gone = flood.flatMap((client, item) => queue.put(`flood ${item}`, client) ?? []);
    expect(gone).toHaveLength(100);
    const honest = Array.from({ length: 40 }, (_, place) => `10.1.${place}.1`);
    const displaced = honest.map((client) => queue.put(`honest of ${client}`, client));
    expect(displaced.every((item) => item?.startsWith("flood"))).toBe(true);
    expect(queue.take(50).filter((item) => item.startsWith("honest"))).toHaveLength(40);
  });

  test("A client in the flooding network waits for that network's turn and not for the whole flood", () => {
    const queue = createFairQueue<string>(100);
    for (let item = 0; item < 300; item++) queue.put(`flood ${item}`, "198.51.100.66");
    expect(queue.put("neighbor", "198.51.100.7")).toMatch(/^flood/);
    for (let place = 0; place < 3; place++) queue.put("elsewhere", `10.1.${place}.1`);
    expect(queue.take(8)).toContain("neighbor");
  });

  test("A client that has as many requests as others does not displace them", () => {
    const queue = createFairQueue<string>(50);
    for (let place = 0; place < 50; place++) queue.put(`first ${place}`, `10.1.${place}.1`);
    expect(queue.put("one too many", "10.2.0.1")).toBe("one too many");
    expect(queue.take(100)).toHaveLength(50);
  });

  test("No request is lost or returned twice, and only the network with the most requests loses one", async () => {
    const asker = fc.oneof(
      fc.constant(null),
      fc.constantFrom("10.0.0.1", "10.0.0.2", "10.0.1.1", "10.0.2.1", "2001:db8:1:2::/64", "2001:db8:1:3::/64"),
    );
    const move = fc.oneof({ arbitrary: asker, weight: 4 }, { arbitrary: fc.integer({ min: 0, max: 6 }), weight: 1 });
    fc.assert(
      fc.property(fc.array(move, { maxLength: 120 }), fc.integer({ min: 1, max: 12 }), (moves, most) => {
        const queue = createFairQueue<number>(most);
        const waiting = new Map<number, string>();
        const of = (network: string) => [...waiting.values()].filter((one) => networkOf(one) === network).length;
        let item = 0;
        for (const one of moves) {
          if (typeof one === "number") {
            for (const taken of queue.take(one)) expect(waiting.delete(taken)).toBe(true);
          } else {
            waiting.set(++item, one ?? OURS);
            const gone = queue.put(item, one);
            if (gone === null) continue;
            const by = waiting.get(gone) ?? "none";
            expect(by).not.toBe(OURS);
            for (const other of waiting.values())
              if (other !== OURS) expect(of(networkOf(by))).toBeGreaterThanOrEqual(of(networkOf(other)));
            waiting.delete(gone);
          }
          expect(queue.size()).toBe(waiting.size);
          expect([...waiting.values()].filter((one) => one !== OURS).length).toBeLessThanOrEqual(most);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
