import { subscribe } from "node:diagnostics_channel";
import { join } from "node:path";
import { fetchTransfers } from "../../indexer/fetch/fetch.ts";
import { openDuck, quote } from "../../indexer/history/duck.ts";
import type { ChainPlan } from "./generated-chain.ts";
import { type Goal, judge } from "./goals.ts";
import { type Stage, withStage } from "./stage.ts";
import { writeCsv } from "./transfers-csv.ts";

// `npm run index:fetch` in authorized scope from a node that compresses, beside which it counts every payment exactly once.

/** As on Base: 230 transfers of USDC a block, of which 11.5 are payments. */
const PER_BLOCK = 230;
/**
 * Whether the wallets that send every tenth transfer pay by authorization, too. With each payer that does, its plain
 * transfers come along.
 */
const WORLDS = {
  "busy wallets sign nothing": { areBusySilent: true, authorisedEvery: 18 },
  "busy wallets pay as often as others": { areBusySilent: false, authorisedEvery: 20 },
} as const satisfies Readonly<Record<string, Partial<ChainPlan>>>;

type World = keyof typeof WORLDS;

/** What `fetch` has received so far, as it came over the wire. */
let received = 0;
const countReceived = (message: unknown) => {
  const { chunk } = message as { readonly chunk: Uint8Array };
  received += chunk.byteLength;
};

interface Measured {
  readonly payments: number;
  /** Payments that only the files have, or only the chain. */
  readonly different: number;
  /** All of these for a payment. */
  readonly json: number;
  readonly wire: number;
  readonly processorUs: number;
  readonly blocksARequest: number;
}

async function measure({ env, chain, folder }: Stage): Promise<Measured> {
  const [before, receivedBefore] = [process.cpuUsage(), received];
  const settings = { urls: [env.BASE_RPC_URL], perSecond: 10_000, scope: "authorised", startBlock: 1 } as const;
  const out = join(folder, "fetched");
  const { files, traffic } = await fetchTransfers({ settings, folder: out, tell: () => undefined });
  const { user, system } = process.cpuUsage(before);
  const wire = received - receivedBefore;
  const list = files.map(({ file }) => file);
  const { payments, different } = await compare({ chain, folder }, list);
  console.log(
    `${payments} payments in ${chain.last} blocks: ${files.length} files, ${traffic.requests} requests, ${(traffic.bytes / 1e6).toFixed(1)} MB of JSON, ${(wire / 1e6).toFixed(1)} MB on the wire`,
  );
  return {
    ...{ payments, different, json: traffic.bytes / payments, wire: wire / payments },
    ...{ processorUs: (user + system) / payments, blocksARequest: chain.last / traffic.requests },
  };
}

/** How many payments the chain has, and how many only one of it and the files has. */
async function compare({ chain, folder }: Pick<Stage, "chain" | "folder">, files: readonly string[]) {
  const expected = join(folder, "transfers.csv");
  await writeCsv(chain, expected);
  const duck = await openDuck(join(folder, "duck"));
  const columns = `block, "time", log_index, value, authorised`;
  const hexes = ["transaction", "from", "to"];
  const theirs = `select ${columns}, ${hexes.map((name) => `"${name}"`).join()} from read_csv(${quote(expected)}) where authorised`;
  const list = files.map(quote).join();
  const ours = `select ${columns}, ${hexes.map((name) => `'0x' || lower(hex("${name}"))`).join()} from read_parquet([${list}])`;
  const [row] = await duck.rows<{ different: number; payments: number }>(
    `select count(*)::double as different, (select count(*) from (${theirs}))::double as payments
      from ((${ours} except all ${theirs}) union all (${theirs} except all ${ours}))`,
  );
  duck.close();
  return row ?? { payments: Number.NaN, different: Number.NaN };
}

/** The bytes are a goal where the busiest sign nothing: else their plain transfers come along, whoever asks. */
function goalsOf(name: World, measured: Measured): readonly Goal[] {
  const most = (what: string, value: number, limit: number): Goal => ({
    ...{ name: `${name}: ${what}`, value, limit, isFloor: false },
  });
  const { json, wire, processorUs, blocksARequest, different } = measured;
  const isJudged = WORLDS[name].areBusySilent;
  console.log(
    `${name}: ${json.toFixed(0)} bytes of JSON a payment (${isJudged ? "judged below" : "not judged: see docs/index.md"}), ${wire.toFixed(0)} on the wire`,
  );
  return [
    ...(isJudged ? [most("bytes of JSON a payment", json, 1_500)] : []),
    most("µs a payment", processorUs, 30),
    { name: `${name}: blocks a request`, value: blocksARequest, limit: 35, isFloor: true },
    most("payments that differ", different, 0),
  ];
}

/** @param transfers of the chain. Returns whether all goals were met. */
export async function runFetch(transfers: number): Promise<boolean> {
  subscribe("undici:request:bodyChunkReceived", countReceived);
  const goals: Goal[] = [];
  for (const name of Object.keys(WORLDS) as World[]) {
    const plan = { transfers, perBlock: PER_BLOCK, secondsPerBlock: 2, isCompressing: true, ...WORLDS[name] };
    goals.push(...goalsOf(name, await withStage(plan, measure)));
  }
  return judge(goals);
}
