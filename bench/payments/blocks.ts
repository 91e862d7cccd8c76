import { setTimeout as sleep } from "node:timers/promises";
import type { Figure } from "../table.ts";
import { warmUp } from "./loads.ts";
import { figure, type Load, measure, type Round } from "./paying.ts";
import { inWorld, type World } from "./world.ts";

const ROUNDS = 3;
const SECONDS = 2;
const LOADS = [
  { payers: 1, each: 5 },
  { payers: 16, each: 2 },
] as const;
const MOST_P50 = 1.1;

/** Measures with a block every two seconds, as on Base. */
export const blocks = () =>
  inWorld({ mining: ["--block-time", String(SECONDS)], payers: 16 }, async (world) => {
    await warmUp(world, 1);
    const figures: Figure[] = [];
    for (const load of LOADS) figures.push(await compare(world, load));
    return figures;
  });

/**
 * Measures both sides together, in the same blocks, because they mostly wait. Payments begin at all times between two blocks.
 * If each began right after the last one settled, the delay until a settlement is noticed would be hidden.
 */
async function compare({ sides, payers, chain }: World, { payers: count, each }: (typeof LOADS)[number]) {
  const nextBlock = watchBlocks(chain);
  const until = async (payer: number, payment: number) => {
    await nextBlock();
    const place = payer * each + payment;
    await sleep(((place + 0.5) / (count * each)) * SECONDS * 1_000 * 0.9);
  };
  const load: Load = { payers: payers.slice(0, count), each, until };
  const rounds: { ours: Round[]; peer: Round[] } = { ours: [], peer: [] };
  for (let round = 0; round < ROUNDS; round++) {
    const [ours, peer] = await Promise.all([measure(sides.ours, load), measure(sides.peer, load)]);
    rounds.ours.push(ours);
    rounds.peer.push(peer);
  }
  return { ...figure(`${count}, a block every ${SECONDS} s: p50, ms`, rounds, (one) => one.p50), atMost: MOST_P50 };
}

/** Returns a function that waits for the next block. All waiting payers share one request to the node. */
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
