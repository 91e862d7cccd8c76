import type { Address } from "viem";
import type { AnvilClient } from "../../scripts/embedded/anvil.ts";
import { processorMs } from "../programs.ts";
import { type Figure, median } from "../table.ts";
import { figure, measure, type Round } from "./paying.ts";
import { AT_ONCE, inWorld, type Sides, type World } from "./world.ts";

/** The concurrent payers, the payments that each makes in sequence, and the minimum throughput relative to the peer. */
const LOADS = [
  { payers: 1, each: 40, atLeast: 1.4 },
  { payers: 16, each: 12, atLeast: 1.8 },
  { payers: 64, each: 5, atLeast: 2.3 },
  { payers: 128, each: 3, atLeast: 2.7 },
] as const;
const ROUNDS = 3;
/** The number of payers for which the 99th percentile and gas have goals, and the maximum relative to the peer. */
const PROMISED = { payers: 64, p99: 0.5, gas: 0.65 };

/** Measures from one payer to many, with blocks on demand. */
export const loads = () =>
  inWorld({ mining: AT_ONCE, payers: Math.max(...LOADS.map(({ payers }) => payers)) }, async (world) => {
    await warmUp(world);
    const figures: Figure[] = [];
    for (const load of LOADS) figures.push(...(await compare(world, load)));
    return figures;
  });

/** Warms up both sides before measuring. */
export async function warmUp({ sides, payers }: World, each = 4): Promise<void> {
  for (const side of Object.values(sides)) await measure(side, { payers: payers.slice(0, 16), each });
}

async function compare(world: World, { payers: count, each, atLeast }: (typeof LOADS)[number]): Promise<Figure[]> {
  const { sides, chain, processes } = world;
  const spent = (side: keyof Sides) => processes[side].reduce((sum, pid) => sum + processorMs(pid), 0);
  const costs: Record<keyof Sides, { gas: number; ms: number }[]> = { ours: [], peer: [] };
  const load = { payers: world.payers.slice(0, count), each };
  const rounds: Record<keyof Sides, Round[]> = { ours: [], peer: [] };
  for (let round = 0; round < ROUNDS; round++)
    for (const side of ["peer", "ours"] as const) {
      const before = { block: await chain.getBlockNumber(), ms: spent(side) };
      rounds[side].push(await measure(sides[side], load));
      const { gas } = await spentSince(chain, sides[side].sender, before.block);
      costs[side].push({ gas: gas / (count * each), ms: (spent(side) - before.ms) / (count * each) });
    }
  const cost = (name: string, of: "gas" | "ms"): Figure => ({
    ...{ name: `${count}: ${name}`, ours: median(costs.ours.map((one) => one[of])) },
    peer: median(costs.peer.map((one) => one[of])),
  });
  const p99 = figure(`${count}: p99, ms`, rounds, (round: Round) => round.p99);
  const gas = cost("gas per payment", "gas");
  const isPromised = count === PROMISED.payers;
  return [
    { ...figure(`${count}: payments/s`, rounds, (round) => round.perSecond), atLeast },
    figure(`${count}: p50, ms`, rounds, (round) => round.p50),
    isPromised ? { ...p99, atMost: PROMISED.p99 } : p99,
    isPromised ? { ...gas, atMost: PROMISED.gas } : gas,
    cost("processor ms per payment, without the node", "ms"),
  ];
}

/** Returns the number of an account's transactions after a block, and their gas. */
export async function spentSince(chain: AnvilClient, account: Address, block: bigint) {
  const sender = account.toLowerCase();
  let [gas, transactions] = [0, 0];
  for (let blockNumber = block + 1n; blockNumber <= (await chain.getBlockNumber()); blockNumber++)
    for (const hash of (await chain.getBlock({ blockNumber })).transactions) {
      const { from, gasUsed } = await chain.getTransactionReceipt({ hash });
      if (from.toLowerCase() !== sender) continue;
      gas += Number(gasUsed);
      transactions++;
    }
  return { gas, transactions };
}
