import { type Goal, judgeAll } from "./goals.ts";
import { measure, print, ratio, takeTurns } from "./paying.ts";
import { AT_ONCE, inWorld, type World } from "./world.ts";

/** Payers at once, and how many payments each makes, one after the other. */
const LOADS = [
  { payers: 1, each: 40, goal: 1.3 },
  { payers: 16, each: 12, goal: 2.5 },
  { payers: 64, each: 5, goal: 4 },
  { payers: 128, each: 3, goal: 2.5 },
] as const;
const ROUNDS = 3;
/** Of the peer's time. */
const GOALS = { p50Alone: 0.7, p99At64: 0.5 };

/** From one payer to many, with blocks that come as soon as there is something to put in. */
export const loads = () =>
  inWorld({ mining: AT_ONCE, payers: Math.max(...LOADS.map(({ payers }) => payers)) }, async (world) => {
    await warmUp(world);
    let isReached = true;
    for (const load of LOADS) isReached = (await compare(world, load)) && isReached;
    return isReached;
  });

/** Once each way before anything counts. */
export async function warmUp({ sides, payers }: World, each = 4): Promise<void> {
  for (const side of Object.values(sides)) await measure(side, { payers: payers.slice(0, 16), each });
}

async function compare({ sides, payers }: World, { payers: count, each, goal }: (typeof LOADS)[number]) {
  const rounds = await takeTurns(sides, { payers: payers.slice(0, count), each }, ROUNDS);
  console.log(`${count} payers, ${each} payments each`);
  print(rounds);
  const goals: Goal[] = [{ what: "throughput", value: ratio(rounds, (r) => r.perSecond), least: goal }];
  const [p50, p99] = [ratio(rounds, (r) => r.p50), ratio(rounds, (r) => r.p99)];
  if (count === 1) goals.push({ what: "p50", value: p50, most: GOALS.p50Alone });
  if (count === 64) goals.push({ what: "p99", value: p99, most: GOALS.p99At64 });
  return judgeAll(goals);
}
