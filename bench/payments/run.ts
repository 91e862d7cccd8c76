// Compares one of our paid routes with a bare `@x402/hono` server that has the stock middleware and an empty handler, on the
// same chain and machine, with the same payers, in turns. Ours settles through its own relayer, the peer through the stock
// facilitator, as each would in production. Payments are signed beforehand, so only the servers' time is measured. Then compares
// escrowed sales with `exact` sales.
//
//   npm run bench:payments -- [loads] [blocks] [escrow]      default: these three
//   npm run bench:payments -- facilitators                   our relayer and three other facilitators
import { setTimeout as sleep } from "node:timers/promises";
import { compareFacilitators } from "../facilitators/compare.ts";
import { type Figure, report } from "../table.ts";
import { escrow } from "./escrow.ts";
import { loads, warmUp } from "./loads.ts";
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
const blocks = () =>
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

const PARTS: Readonly<Record<string, () => Promise<readonly Figure[]>>> = { loads, blocks, escrow };

const names = process.argv.slice(2);
if (names[0] === "facilitators" && names.length === 1) {
  await compareFacilitators();
  process.exit();
}
if (names.some((name) => PARTS[name] === undefined)) {
  console.error(`Usage: npm run bench:payments -- [${Object.keys(PARTS).join("] [")}], or facilitators`);
  process.exit(1);
}
let isReached = true;
for (const name of names.length === 0 ? Object.keys(PARTS) : names)
  isReached = report(`payments, ${name}, by concurrent payers`, (await PARTS[name]?.()) ?? []) && isReached;
process.exitCode = isReached ? 0 : 1;
