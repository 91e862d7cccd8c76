import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test, vi } from "vitest";
import { type Departures, together } from "../../../api/adapters/chain/together.ts";

/** Groups that end when the test says so. */
function traced(terms: Partial<Departures> = {}) {
  const groups: { readonly items: readonly number[]; readonly end: () => void }[] = [];
  const work = (items: readonly number[]) =>
    new Promise<readonly number[]>((done, fail) => {
      const end = () => (items.includes(13) ? fail(new Error("13")) : done(items.map((item) => item * 10)));
      groups.push({ items, end });
    });
  return { groups, join: together(work, { most: 4, underWay: 2, waitMs: 60_000, ...terms }) };
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

test("with nothing under way, fewer wait a moment for more that are about to arrive", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "performance"] });
  let coming = 2;
  const { groups, join } = traced({ coming: { count: () => coming, waitMs: 20 } });
  const arrive = (...items: number[]) => {
    for (const item of items) join(item);
    return vi.advanceTimersByTimeAsync(1);
  };
  await arrive(1);
  expect(shown(groups)).toEqual([]);
  coming = 0;
  await arrive(2, 3);
  expect(shown(groups)).toEqual([[1, 2, 3]]);

  groups[0]?.end();
  coming = 9;
  await arrive(4);
  await vi.advanceTimersByTimeAsync(15);
  expect(shown(groups)).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(5);
  expect(shown(groups)).toEqual([[1, 2, 3], [4]]);

  // As many as are still to come do not wait for them, nor does a full group.
  groups[1]?.end();
  coming = 2;
  await arrive(5, 6);
  groups[2]?.end();
  coming = 9;
  await arrive(7, 8, 9, 10);
  expect(shown(groups).slice(2)).toEqual([
    [5, 6],
    [7, 8, 9, 10],
  ]);
});

test("what was waiting for a group that ended waits no longer for more than it would have waited without it", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "performance"] });
  const { groups, join } = traced({ coming: { count: () => 9, waitMs: 20 } });
  join(0);
  await vi.advanceTimersByTimeAsync(25);
  join(1);
  await vi.advanceTimersByTimeAsync(10);
  groups[0]?.end();
  await vi.advanceTimersByTimeAsync(5);
  expect(shown(groups)).toEqual([[0]]);
  await vi.advanceTimersByTimeAsync(6);
  expect(shown(groups)).toEqual([[0], [1]]);
});

test("at the last call what waits sets out although a group is under way; from then on nothing waits for that group", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "performance"] });
  const [blockMs, began] = [2_000, performance.now()];
  const lastCallInMs = () => blockMs - 150 - (performance.now() - began);
  let coming = 0;
  const { groups, join } = traced({
    waitMs: 100,
    coming: { count: () => coming, waitMs: 20 },
    underWay: 9,
    lastCallInMs,
  });
  const after = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  join(0);
  await after(1_799);
  join(1);
  join(2);
  await after(49);
  expect(shown(groups)).toEqual([[0]]);
  await after(3);
  expect(shown(groups)).toEqual([[0], [1, 2]]);
  join(3);
  await after(2);
  expect(shown(groups).slice(2)).toEqual([[3]]);
  // More are about to arrive: waited for, but not for long.
  coming = 3;
  join(4);
  await after(18);
  expect(shown(groups)).toHaveLength(3);
  await after(4);
  expect(shown(groups).slice(3)).toEqual([[4]]);
});

test("those who come one by one do not take every place before the last call", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "performance"] });
  const [blockMs, began] = [2_000, performance.now()];
  const lastCallInMs = () => blockMs - 150 - (performance.now() - began);
  const { groups, join } = traced({ waitMs: 100, underWay: 6, lastCallInMs });
  const after = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  for (let item = 0; item < 8; item++) {
    join(item);
    await after(120);
  }
  expect(shown(groups)).toEqual([[0], [1], [2], [3]]);
  await after(1_850 - 8 * 120 - 2);
  expect(groups).toHaveLength(4);
  await after(4);
  expect(shown(groups).slice(4)).toEqual([[4, 5, 6, 7]]);
  join(8);
  await after(2);
  expect(shown(groups).slice(5)).toEqual([[8]]);
});

test("where nobody knows a last call, no place is kept", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "performance"] });
  const { groups, join } = traced({ waitMs: 100, underWay: 6 });
  for (let item = 0; item < 8; item++) {
    join(item);
    await vi.advanceTimersByTimeAsync(120);
  }
  expect(shown(groups)).toEqual([[0], [1], [2], [3], [4], [5]]);
});

test("before the last call a group waits no longer than it would without one", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "performance"] });
  const { groups, join } = traced({ waitMs: 100, lastCallInMs: () => 500 });
  join(0);
  await vi.advanceTimersByTimeAsync(1);
  join(1);
  await vi.advanceTimersByTimeAsync(98);
  expect(shown(groups)).toEqual([[0]]);
  await vi.advanceTimersByTimeAsync(4);
  expect(shown(groups)).toEqual([[0], [1]]);
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
