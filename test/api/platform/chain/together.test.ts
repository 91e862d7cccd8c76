import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test, vi } from "vitest";
import { type BatchLimits, createBatcher } from "../../../../api/platform/chain/batcher.ts";

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

test("what waited while nothing could go counts; until something can go, nobody looks at the clock", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "performance"] });
  const { groups, join } = traced({ waitMs: 1_000 });
  join(0);
  await vi.advanceTimersByTimeAsync(1);
  for (const item of [1, 2, 3, 4]) join(item);
  await vi.advanceTimersByTimeAsync(1);
  join(5);
  await vi.advanceTimersByTimeAsync(600);
  expect([shown(groups), vi.getTimerCount()]).toEqual([[[0], [1, 2, 3, 4]], 0]);
  groups[1]?.end();
  await vi.advanceTimersByTimeAsync(398);
  expect(shown(groups)).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(2);
  expect(shown(groups)).toEqual([[0], [1, 2, 3, 4], [5]]);
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
