import type { PrivateKeyAccount } from "viem/accounts";
import { processorMs } from "../processor.ts";
import { median, type Program } from "../programs.ts";
import { warmUp } from "./loads.ts";
import { measure, pay, sign } from "./paying.ts";
import { AT_ONCE, inWorld, type Side, type Sides, type World } from "./world.ts";

const ROUNDS = 3;
const LOAD = { payers: 16, each: 12 } as const;
const TRACED = 30;

/** Where a payment's time goes, and the processor's time in each process. */
export const time = () =>
  inWorld({ mining: AT_ONCE, payers: LOAD.payers }, async (world) => {
    await warmUp(world);
    await processors(world);
    const { url, ...program } = await world.startOurs({ LOG_LEVEL: "debug" });
    const [payer] = world.payers;
    if (payer !== undefined) await breakdown({ ...world.sides.ours, url }, program, payer);
    return true;
  });

/** Those that a side's payments keep busy, besides the client in this process. */
const BUSY = {
  ours: ["API", "PostgreSQL", "node"],
  peer: ["peer", "facilitator", "node"],
} as const satisfies Record<keyof Sides, readonly (keyof World["processes"])[]>;

async function processors({ sides, payers, processes }: World): Promise<void> {
  const spent = new Map<string, number[]>();
  for (let round = 0; round < ROUNDS; round++)
    for (const side of ["peer", "ours"] as const) {
      const used = () => [...BUSY[side].map((name) => processorMs(processes[name])), clientMs()];
      const before = used();
      await measure(sides[side], { payers, each: LOAD.each });
      const after = used();
      for (const [place, name] of [...BUSY[side], "client"].entries()) {
        const ms = ((after[place] ?? 0) - (before[place] ?? 0)) / (LOAD.payers * LOAD.each);
        spent.set(`${side} ${name}`, [...(spent.get(`${side} ${name}`) ?? []), ms]);
      }
    }
  console.log(`processor time, ms a payment at ${LOAD.payers} payers; the client's includes signing`);
  const totals = { peer: 0, ours: 0 };
  for (const side of ["peer", "ours"] as const) {
    const parts = [...BUSY[side], "client"].map((name) => {
      const ms = median(spent.get(`${side} ${name}`) ?? []);
      if (name !== "client") totals[side] += ms;
      return `${name} ${ms.toFixed(1)}`;
    });
    console.log(`  ${side} ${totals[side].toFixed(1)} without the client: ${parts.join(", ")}`);
  }
  console.log(`  ours over the peer's ${(totals.ours / totals.peer).toFixed(2)}`);
}

/** Of this process alone: all the others are its children. */
function clientMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** Mean milliseconds per command of the gate, from its own debug log. */
async function breakdown(side: Side, program: Program, payer: PrivateKeyAccount): Promise<void> {
  const before = program.lines.length;
  const times: number[] = [];
  for (const header of await sign(side, payer, TRACED)) times.push((await pay(side, header)) ?? Number.NaN);
  const spent = new Map<string, number>();
  for (const line of program.lines.slice(before)) {
    const entry = JSON.parse(line) as { msg: string; command?: string; ms?: number };
    if (entry.msg !== "gate" || entry.command === undefined) continue;
    const part =
      { insert: "journal", write: "journal", take: "journal", submit: "settle" }[entry.command] ?? entry.command;
    spent.set(part, (spent.get(part) ?? 0) + (entry.ms ?? 0) / TRACED);
  }
  const parts = [...spent].map(([part, ms]) => `${part} ${ms.toFixed(1)}`);
  const total = times.reduce((sum, ms) => sum + ms, 0) / times.length;
  console.log(`where our time goes, ms a payment of ${total.toFixed(1)}, one payer: ${parts.join(", ")}`);
}
