import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { watchBlocks } from "../../../api/adapters/chain/relayer/next-block.ts";

beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => vi.useRealTimers());

const BLOCK_MS = 2_000;

/** A chain with a block every two seconds, the first at `first`, and how often it was asked. */
function chainFrom(first: number) {
  const began = performance.now();
  const asked: number[] = [];
  const client = {
    getBlockNumber: async () => {
      const now = performance.now() - began;
      asked.push(now);
      return BigInt(Math.max(0, Math.floor((now - first) / BLOCK_MS) + 1));
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
