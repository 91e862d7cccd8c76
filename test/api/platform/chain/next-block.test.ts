import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { watchBlocks } from "../../../../api/platform/relayer/places.ts";

beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => vi.useRealTimers());

const BLOCK_MS = 2_000;

/** A chain with a block every two seconds, the first at `first`, and how often it was asked. */
function chainFrom(first: number) {
  const began = performance.now();
  const since = () => performance.now() - began;
  let asked = 0;
  const getBlockNumber = async () => {
    asked++;
    return BigInt(Math.max(0, Math.floor((since() - first) / BLOCK_MS) + 1));
  };
  return { asked: () => asked, since, nextBlock: watchBlocks({ getBlockNumber }) };
}

test.each([0, 137, 900, 1_990])("a block is noticed within 100 ms (first at %i)", async (first) => {
  const { nextBlock, since } = chainFrom(first);
  const times: number[] = [];
  const watching = (async () => {
    while (times.length < 8) {
      await nextBlock(60_000);
      times.push(since());
    }
  })();
  await vi.advanceTimersByTimeAsync(BLOCK_MS * 10);
  await watching;
  for (const time of times.slice(1)) expect((time - first) % BLOCK_MS).toBeLessThanOrEqual(101);
});

test("one caller asks for all who wait, and the chain is not asked while nobody waits", async () => {
  const { asked, nextBlock } = chainFrom(500);
  await vi.advanceTimersByTimeAsync(10);
  const waits = Promise.all(Array.from({ length: 20 }, () => nextBlock(60_000)));
  await vi.advanceTimersByTimeAsync(3_000);
  await waits;
  const before = asked();
  expect(before).toBeLessThan(10);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked()).toBe(before);
});

test("a chain that halts, or a node that does not answer, keeps nobody longer than asked", async () => {
  const broken = watchBlocks({ getBlockNumber: () => Promise.reject(new Error("away")) });
  const woken = vi.fn();
  void broken(500).then(woken);
  await vi.advanceTimersByTimeAsync(499);
  expect(woken).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(woken).toHaveBeenCalledOnce();
});
