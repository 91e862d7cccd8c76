import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createBatchQueue } from "../../../../api/payments/settle/batching-chain.ts";
import { noPlace } from "../../../../api/platform/relayer/places.ts";

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
