import { setTimeout as sleep } from "node:timers/promises";
import { judge, judgeAll } from "./goals.ts";
import { warmUp } from "./loads.ts";
import { type Load, measure, print, type Round, type Rounds, ratio, takeTurns } from "./paying.ts";
import { inWorld, type World } from "./world.ts";

const ROUNDS = 3;
const SLOW = { seconds: 2, mostP50: 1.05 };
const SLOW_LOADS = [
  { payers: 1, each: 5 },
  { payers: 16, each: 2 },
] as const;
/** So many payments that a round's two ends, where a block goes by half empty, weigh little. */
const FAST = { seconds: 0.2, payers: 64, each: 15, leastThroughput: 3 };

/** Blocks at intervals and no sooner, as on Base: every two seconds, and every fifth of one. */
export const blocks = async (): Promise<boolean> => {
  const slow = await inWorld(plan(SLOW.seconds, 16), async (world) => {
    await warmUp(world, 1);
    let isReached = true;
    for (const load of SLOW_LOADS) isReached = (await compareSlow(world, load)) && isReached;
    return isReached;
  });
  return (await inWorld(plan(FAST.seconds, FAST.payers), compareFast)) && slow;
};

const plan = (seconds: number, payers: number) => ({ mining: ["--block-time", String(seconds)], payers });

/**
 * Both sides at once, in the same blocks: they mostly wait. Payments begin at every moment between two blocks: one that
 * begins right after the last one has settled would hide how late a settlement is noticed.
 */
async function compareSlow(world: World, { payers: count, each }: (typeof SLOW_LOADS)[number]): Promise<boolean> {
  const { sides, payers, chain } = world;
  const nextBlock = watchBlocks(chain);
  const until = async (payer: number, payment: number) => {
    await nextBlock();
    const place = payer * each + payment;
    await sleep(((place + 0.5) / (count * each)) * SLOW.seconds * 1_000 * 0.9);
  };
  const load: Load = { payers: payers.slice(0, count), each, until };
  const all: { ours: Round[]; peer: Round[] } = { ours: [], peer: [] };
  for (let round = 0; round < ROUNDS; round++) {
    const [ours, peer] = await Promise.all([measure(sides.ours, load), measure(sides.peer, load)]);
    all.ours.push(ours);
    all.peer.push(peer);
  }
  console.log(`blocks every ${SLOW.seconds} s, ${count} payers, ${each} payments each`);
  print(all satisfies Rounds);
  return judge({ what: "p50", value: ratio(all, (r) => r.p50), most: SLOW.mostP50 });
}

/** The next block: one question of the node for all who ask. */
function watchBlocks(chain: World["chain"]): () => Promise<void> {
  let next: Promise<void> | null = null;
  const come = async () => {
    const before = await chain.getBlockNumber();
    while ((await chain.getBlockNumber()) === before) await sleep(10);
    next = null;
  };
  return () => {
    next ??= come();
    return next;
  };
}

async function compareFast(world: World): Promise<boolean> {
  await warmUp(world);
  const { payers, each, seconds, leastThroughput } = FAST;
  const rounds = await takeTurns(world.sides, { payers: world.payers.slice(0, payers), each }, ROUNDS);
  console.log(`blocks every ${seconds} s, ${payers} payers, ${each} payments each`);
  print(rounds);
  return judgeAll([{ what: "throughput", value: ratio(rounds, (r) => r.perSecond), least: leastThroughput }]);
}
