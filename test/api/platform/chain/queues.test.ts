import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createBatchQueue } from "../../../../api/payments/settle/batching-chain.ts";
import { type BatchLimits, createBatcher } from "../../../../api/platform/chain/batcher.ts";
import { createWakeUp } from "../../../../api/platform/jobs/wake-up.ts";
import { noPlace } from "../../../../api/platform/relayer/places.ts";

describe("work that goes together", () => {
  /** Groups that end when the test says so. */
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

  test("what arrives in one turn goes at once, together; what comes meanwhile waits for it", async () => {
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

  test("a full group does not wait, as long as another may be under way", async () => {
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

  test("the first waits no longer than it may, even while another group never ends", async () => {
    const { groups, join } = traced({ waitMs: 30, underWay: 3 });
    join(0);
    await sleep(5);
    join(1);
    await expect.poll(() => shown(groups), { timeout: 5_000 }).toEqual([[0], [1]]);
    join(2);
    await expect.poll(() => shown(groups), { timeout: 5_000 }).toEqual([[0], [1], [2]]);
  });

  test("a failure is that of its group alone", async () => {
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

describe("the queue of batches", () => {
  beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "performance"] }));
  afterEach(() => vi.useRealTimers());

  /** Groups that end when the test says so, and blocks that come when it does. */
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

  test("the first goes at once; others wait for it, for a full batch, or for 200 ms", async () => {
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

  test("what finds no place goes with what has come meanwhile, once a block has come", async () => {
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

  test("after four seconds it comes back no more, and its neighbor does", async () => {
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

  test("work that fails as a whole fails for each of its payments", async () => {
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

describe("wake-ups", () => {
  /** Everything that can happen without a timer has happened. */
  const turns = () => new Promise((done) => setImmediate(done));
  const AN_HOUR = 3_600_000;

  test("a pause ends when it has rung, and not before", async () => {
    const bell = createWakeUp();
    let isOver = false;
    const pause = bell.wait(AN_HOUR).then(() => {
      isOver = true;
    });
    await turns();
    expect(isOver).toBe(false);
    bell.ring();
    await pause;
  });

  test("what rang while nobody paused ends the next pause, and only that one", async () => {
    const bell = createWakeUp();
    bell.ring();
    bell.ring();
    await bell.wait(AN_HOUR);
    let isOver = false;
    const pause = bell.wait(AN_HOUR).then(() => {
      isOver = true;
    });
    await turns();
    expect(isOver).toBe(false);
    bell.ring();
    await pause;
  });
});
