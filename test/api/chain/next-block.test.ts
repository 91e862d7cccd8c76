import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { watchBlocks } from "../../../api/adapters/chain/relayer/next-block.ts";

beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => vi.useRealTimers());

const BLOCK_MS = 2_000;

/** A chain whose block times, in milliseconds from now, are given, and how far it is. */
function chainAt(times: readonly number[]) {
  const began = performance.now();
  const since = () => performance.now() - began;
  const getBlockNumber = async () => BigInt(times.filter((time) => time <= since()).length);
  return { since, nextBlock: watchBlocks({ getBlockNumber }, BLOCK_MS) };
}

/** A chain with a block every so often, by default two seconds, the first at `first`, and how often it was asked. */
function chainFrom(first: number, every = BLOCK_MS) {
  const began = performance.now();
  const asked: number[] = [];
  const client = {
    getBlockNumber: async () => {
      const now = performance.now() - began;
      asked.push(now);
      return BigInt(Math.max(0, Math.floor((now - first) / every) + 1));
    },
  };
  const since = () => performance.now() - began;
  return { asked, since, nextBlock: watchBlocks(client, BLOCK_MS) };
}

/** When each of `count` blocks was noticed. */
async function noticed({ nextBlock, since }: ReturnType<typeof chainFrom>, count: number): Promise<number[]> {
  const times: number[] = [];
  const watching = (async () => {
    while (times.length < count) {
      await nextBlock(60_000);
      times.push(since());
    }
  })();
  await vi.advanceTimersByTimeAsync(BLOCK_MS * (count + 2));
  await watching;
  return times;
}

test.each([0, 137, 900, 1_990])(
  "blocks are noticed within 50 ms once the second has been seen (first at %i)",
  async (first) => {
    const chain = chainFrom(first);
    const times = await noticed(chain, 8);
    const late = times.map((time) => (((time - first) % BLOCK_MS) + BLOCK_MS) % BLOCK_MS);
    for (const one of late.slice(3)) expect(one).toBeLessThanOrEqual(50);
    // About ten calls a block, whatever the number of those who wait.
    expect(chain.asked.length).toBeLessThan(8 * 20);
  },
);

test.each([
  { every: BLOCK_MS, within: 60 },
  { every: 200, within: 70 },
])(
  "nobody waited for some blocks, and the next one of $every ms is noticed all the same",
  async ({ every, within }) => {
    const chain = chainFrom(137, every);
    const next = async () => {
      const woken = chain.nextBlock(60_000).then(chain.since);
      await vi.advanceTimersByTimeAsync(every * 3);
      return woken;
    };
    for (let block = 0; block < 4; block++) await next();
    for (const blocks of [1.3, 2.55, 5.9, 3.05, 1.8]) {
      await vi.advanceTimersByTimeAsync(every * blocks);
      // The first to be told of blocks that came meanwhile; then one that came while somebody waited.
      const began = chain.since();
      let noticed = 0;
      const watching = (async () => {
        const before = Math.floor((began - 137) / every);
        while (Math.floor((noticed - 137) / every) <= before) {
          await chain.nextBlock(60_000);
          noticed = chain.since();
        }
      })();
      await vi.advanceTimersByTimeAsync(every * 3);
      await watching;
      expect((noticed - 137) % every).toBeLessThanOrEqual(within);
    }
  },
);

test("blocks that came close together, from a node that answers slowly, are soon forgotten", async () => {
  const began = performance.now();
  let asked = 0;
  const nextBlock = watchBlocks(
    {
      getBlockNumber: async () => {
        asked++;
        await new Promise((answer) => setTimeout(answer, 150));
        const now = performance.now() - began;
        return BigInt(Math.floor(now / BLOCK_MS)) + (now > 5_500 ? 1n : 0n) + (now > 5_900 ? 1n : 0n);
      },
    },
    BLOCK_MS,
  );
  const watching = (async () => {
    while (performance.now() - began < 30_000) await nextBlock(60_000);
  })();
  await vi.advanceTimersByTimeAsync(20_000);
  asked = 0;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked).toBeLessThan(10_000 / 200);
  await vi.advanceTimersByTimeAsync(60_000);
  await watching;
});

test("one caller asks for all who wait, and nobody is asked while nobody waits", async () => {
  const chain = chainFrom(500);
  const waits = Promise.all(Array.from({ length: 20 }, () => chain.nextBlock(60_000)));
  await vi.advanceTimersByTimeAsync(3_000);
  await waits;
  const { length } = chain.asked;
  expect(length).toBeLessThan(40);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(chain.asked.length).toBe(length);
});

test("a chain that halts, or a node that does not answer, keeps nobody longer than asked", async () => {
  const broken = watchBlocks({ getBlockNumber: () => Promise.reject(new Error("away")) }, BLOCK_MS);
  const woken = vi.fn();
  void broken(500).then(woken);
  await vi.advanceTimersByTimeAsync(499);
  expect(woken).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(woken).toHaveBeenCalledOnce();
});

/** What is said of the last call at every moment of a time in which somebody waits for blocks. */
async function callsDuring({ nextBlock, since }: ReturnType<typeof chainAt>, ms: number) {
  const calls: { readonly at: number; readonly inMs: number }[] = [];
  let isOver = false;
  const watch = async () => {
    while (!isOver) await nextBlock(60_000);
  };
  void watch();
  while (since() < ms) {
    await vi.advanceTimersByTimeAsync(10);
    calls.push({ at: since(), inMs: nextBlock.lastCallInMs() });
  }
  isOver = true;
  await vi.advanceTimersByTimeAsync(BLOCK_MS);
  return calls;
}

const every = (gap: number, count: number): number[] => Array.from({ length: count }, (_, block) => 137 + block * gap);

test.each([
  { gap: BLOCK_MS, before: 150 },
  { gap: 200, before: 200 / 3 },
])("with a block every $gap ms, the last call is $before ms before the next", async ({ gap, before }) => {
  const times = every(gap, 30);
  const calls = await callsDuring(chainAt(times), gap * 25);
  const known = calls.filter(({ at }) => at > gap * 6);
  for (const { at, inMs } of known) {
    // Whether a block that has just come has been seen is not known.
    if ((at - 137) % gap < 60 || (at - 137) % gap > gap - 10) continue;
    const next = times.find((time) => time > at) ?? Number.NaN;
    expect(Math.abs(at + inMs - (next - before))).toBeLessThanOrEqual(45);
  }
  expect(known.length).toBeGreaterThan(100);
});

test.each([
  ["at irregular times", Array.from({ length: 40 }, (_, block) => block * 500 + (block % 2) * 200)],
  ["as soon as there is something to put in", every(40, 400)],
  ["once", [300]],
])("there is no last call on a chain that makes blocks %s", async (_, times) => {
  const calls = await callsDuring(chainAt(times), 12_000);
  expect(new Set(calls.map(({ inMs }) => inMs))).toEqual(new Set([Number.POSITIVE_INFINITY]));
});

test("the last call is known while nobody watches for a few blocks, but not for many", async () => {
  const chain = chainAt(every(BLOCK_MS, 60));
  await callsDuring(chain, 20_000);
  await vi.advanceTimersByTimeAsync(27_137 - chain.since());
  expect(Math.abs(chain.nextBlock.lastCallInMs() - 850)).toBeLessThanOrEqual(45);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(chain.nextBlock.lastCallInMs()).toBe(Number.POSITIVE_INFINITY);
});

test("who looks only now and then does not learn when blocks are due", async () => {
  const { nextBlock, since } = chainAt(every(BLOCK_MS, 60));
  for (let place = 0; place < 12; place++) {
    const told = nextBlock(60_000);
    await vi.advanceTimersByTimeAsync(BLOCK_MS / 4);
    await told;
    await vi.advanceTimersByTimeAsync(BLOCK_MS * 3 - (since() % BLOCK_MS) + 300 + 120 * place);
    expect(nextBlock.lastCallInMs()).toBe(Number.POSITIVE_INFINITY);
  }
});
