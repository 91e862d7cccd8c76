import { askNode, serveNode } from "../../test/support/chain/rpc.ts";
import { median } from "../programs.ts";
import { judge } from "./goals.ts";
import { warmUp } from "./loads.ts";
import { measure } from "./paying.ts";
import { AT_ONCE, inWorld, type Sides } from "./world.ts";

const ROUNDS = 3;
const LOAD = { payers: 16, each: 12 } as const;
/** With blocks every two seconds, each side waits for most of the time. */
const SLOW_LOAD = { payers: 16, each: 2 } as const;
const MOST = 3;

/** How often each side asks its node, at 16 payers. Every call of a JSON-RPC batch counts. */
export const calls = async (): Promise<boolean> => {
  const atOnce = await count({ name: "blocks at once", mining: AT_ONCE, load: LOAD });
  return (await count({ name: "blocks every 2 s", mining: ["--block-time", "2"], load: SLOW_LOAD })) && atOnce;
};

interface Counted {
  readonly name: string;
  readonly mining: readonly string[];
  readonly load: { readonly payers: number; readonly each: number };
}

async function count({ name, mining, load: { payers: many, each } }: Counted): Promise<boolean> {
  const asked = { ours: new Map<string, number>(), peer: new Map<string, number>() };
  const stops: (() => void)[] = [];
  const front = async (rpcUrl: string, methods: Map<string, number>) => {
    const ask = askNode(rpcUrl);
    const server = await serveNode({
      answer: (call) => {
        methods.set(call.method, (methods.get(call.method) ?? 0) + 1);
        return ask(call);
      },
    });
    stops.push(server.stop);
    return server.url;
  };
  const nodes = async (rpcUrl: string) => ({
    ours: await front(rpcUrl, asked.ours),
    peer: await front(rpcUrl, asked.peer),
  });
  try {
    return await inWorld({ mining, payers: many, nodes }, async (world) => {
      await warmUp(world, 1);
      const perPayment: Record<keyof Sides, number[]> = { ours: [], peer: [] };
      for (const methods of Object.values(asked)) methods.clear();
      for (let round = 0; round < ROUNDS; round++)
        for (const side of ["peer", "ours"] as const) {
          const before = total(asked[side]);
          await measure(world.sides[side], { payers: world.payers, each });
          perPayment[side].push((total(asked[side]) - before) / (many * each));
        }
      console.log(`calls of the node a payment, ${many} payers, ${name}`);
      for (const side of ["peer", "ours"] as const) {
        const by = [...asked[side]].toSorted(([, a], [, b]) => b - a).map(([method, times]) => `${method} ${times}`);
        console.log(`  ${side} ${median(perPayment[side]).toFixed(1)} (of all rounds: ${by.join(", ")})`);
      }
      return judge({ what: "ours", value: median(perPayment.ours), most: MOST });
    });
  } finally {
    for (const stop of stops) stop();
  }
}

const total = (methods: ReadonlyMap<string, number>): number =>
  [...methods.values()].reduce((sum, one) => sum + one, 0);
