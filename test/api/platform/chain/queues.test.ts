import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createBatchQueue } from "../../../../api/payments/settle/batching-chain.ts";
import { type BatchLimits, createBatcher } from "../../../../api/platform/chain/batcher.ts";
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
