// Escrowed sales end to end (hold, evaluation, release, all mined), by both schemes, against the same number of sales paid
// with plain `exact`: one service, one chain, the same buyers, in turns. What each costs: the processor's time of the
// service, its database, its indexer and its node, apart and together, and transactions and gas. The buyers' own, who sign
// beforehand and take turns on the same processor, is apart: it is the same for each.
//
//   npm run bench:escrow
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { x402Client } from "@x402/core/client";
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from "@x402/core/http";
import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { NETWORKS } from "../../api/kernel/networks.ts";
import { EscrowScheme } from "../../packages/escrow/src/index.ts";
import { type AnvilClient, anvilClient } from "../../scripts/embedded/anvil.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { fundAccounts } from "../../scripts/embedded/usdc.ts";
import { processorMsBy } from "../processor.ts";
import { median, percentile, startProgram, stopProgram } from "../programs.ts";

/** Few wait for their own steps; of many, each step serves more at once. */
const LOADS = [
  { buyers: 16, each: 8 },
  { buyers: 64, each: 3 },
] as const;
const ROUNDS = 3;
/** What the last round leaves to do (finality, the index) is not the next one's. */
const PAUSE_MS = 1_500;
const BASE = NETWORKS["eip155:8453"];
/** What is sold, and the client that pays by no other scheme. */
const SALES = {
  exact: { path: "/test/basic", client: (buyer: PrivateKeyAccount) => new ExactEvmScheme(buyer) },
  commerce: { path: "/escrow/demo", client: (buyer: PrivateKeyAccount) => new EscrowScheme(buyer) },
  "auth-capture": { path: "/escrow/demo", client: (buyer: PrivateKeyAccount) => new AuthCaptureEvmScheme(buyer) },
} as const;
type Sale = keyof typeof SALES;
const ALL = Object.keys(SALES) as readonly Sale[];
const ESCROWED = ALL.filter((sale) => sale !== "exact");
/** The least that escrowed sales a minute may be of those by `exact`. */
const GOAL = 0.8;

async function sign(sale: Sale, url: string, account: PrivateKeyAccount): Promise<string> {
  const { headers } = await fetch(url, { method: "POST" });
  const terms = decodePaymentRequiredHeader(headers.get("payment-required") ?? "");
  const client = new x402Client().register("eip155:*", SALES[sale].client(account));
  return encodePaymentSignatureHeader(await client.createPaymentPayload(terms));
}

async function pay(url: string, header: string): Promise<number> {
  const started = performance.now();
  const response = await fetch(url, { method: "POST", headers: { "payment-signature": header } });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 300)}`);
  return performance.now() - started;
}

/** What the launcher starts, by what is in the command line; the other local chain, its witness and itself are the rest. */
const PROGRAMS = ["API", "PostgreSQL", "index", "node", "rest", "buyers"] as const;
type Spent = Readonly<Record<(typeof PROGRAMS)[number], number>>;

function spentBy({ pid, nodePort }: Pick<Shop, "pid" | "nodePort">): Spent {
  const { user, system } = process.cpuUsage();
  const used = processorMsBy(pid, (line) => {
    if (line.includes("api/main.ts")) return "API";
    if (line.includes("postgres")) return "PostgreSQL";
    if (/ponder|scripts\/indexer/.test(line)) return "index";
    return line.includes("anvil") && line.includes(nodePort) ? "node" : "rest";
  });
  const ms = (name: (typeof PROGRAMS)[number]) => (name === "buyers" ? (user + system) / 1_000 : (used.get(name) ?? 0));
  return Object.fromEntries(PROGRAMS.map((name) => [name, ms(name)])) as Spent;
}

interface Round {
  readonly perMinute: number;
  readonly times: readonly number[];
  /** Of each sale. */
  readonly cost: { readonly processorMs: number; readonly transactions: number; readonly gas: number };
  readonly spent: Spent;
}

/** Where a service sells. */
interface Shop {
  readonly baseUrl: string;
  readonly chain: AnvilClient;
  /** The program that has started everything but the client. */
  readonly pid: number;
  /** In the command line of the chain's node. */
  readonly nodePort: string;
  readonly buyers: readonly PrivateKeyAccount[];
}

async function measure(sale: Sale, shop: Shop, each: number): Promise<Round> {
  const { baseUrl, chain, buyers } = shop;
  const url = `${baseUrl}${SALES[sale].path}`;
  const queues = await Promise.all(
    buyers.map((buyer) => Promise.all(Array.from({ length: each }, () => sign(sale, url, buyer)))),
  );
  await setTimeout(PAUSE_MS);
  const times: number[] = [];
  const before = { block: await chain.getBlockNumber(), spent: spentBy(shop) };
  const started = performance.now();
  await Promise.all(
    queues.map(async (queue) => {
      for (const header of queue) times.push(await pay(url, header));
    }),
  );
  const sales = times.length;
  const perMinute = (sales * 60_000) / (performance.now() - started);
  const after = spentBy(shop);
  const share = (name: keyof Spent) => (after[name] - before.spent[name]) / sales;
  const spent = Object.fromEntries(PROGRAMS.map((name) => [name, share(name)])) as Spent;
  const processorMs = PROGRAMS.reduce((sum, name) => sum + (name === "buyers" ? 0 : spent[name]), 0);
  const { transactions, gas } = await minedSince(chain, before.block);
  return { perMinute, times, spent, cost: { processorMs, transactions: transactions / sales, gas: gas / sales } };
}

async function minedSince(chain: AnvilClient, block: bigint) {
  const sum = { transactions: 0, gas: 0 };
  for (let number = await chain.getBlockNumber(); number > block; number--) {
    const { transactions, gasUsed } = await chain.getBlock({ blockNumber: number });
    sum.transactions += transactions.length;
    sum.gas += Number(gasUsed);
  }
  return sum;
}

async function compare(shop: Shop, each: number): Promise<boolean> {
  const rounds: Record<Sale, Round[]> = { exact: [], commerce: [], "auth-capture": [] };
  for (let round = 0; round < ROUNDS; round++)
    for (const sale of ALL) rounds[sale].push(await measure(sale, shop, each));
  console.log(`${shop.buyers.length} buyers with ${each} sales each, ${ROUNDS} rounds in turns, medians`);
  for (const sale of ALL) print(sale, rounds[sale]);
  console.log(
    `each escrowed sale is one hold, one evaluation and one release; of exact's sales a minute, goal ${GOAL}:`,
  );
  const shares = ESCROWED.map((sale) => {
    const ratios = rounds[sale].map(
      ({ perMinute }, index) => perMinute / (rounds.exact[index]?.perMinute ?? Number.NaN),
    );
    console.log(
      `${sale.padEnd(12)} ${median(ratios).toFixed(2)} (${ratios.map((ratio) => ratio.toFixed(2)).join(" ")})`,
    );
    return median(ratios);
  });
  return shares.every((share) => share >= GOAL);
}

function print(sale: Sale, rounds: readonly Round[]): void {
  const times = rounds.flatMap((round) => round.times);
  const perMinute = Math.round(median(rounds.map((round) => round.perMinute)));
  const ms = [0.5, 0.95].map((share) => Math.round(percentile(times, share)));
  const cost = (of: keyof Round["cost"], digits: number) => median(rounds.map((one) => one.cost[of])).toFixed(digits);
  console.log(
    `${sale.padEnd(12)} ${String(perMinute).padStart(6)} sales/minute   p50 ${ms[0]} ms   p95 ${ms[1]} ms   a sale: ${cost("processorMs", 1)} ms of processor, ${cost("transactions", 2)} transactions, ${cost("gas", 0)} gas`,
  );
  const spent = PROGRAMS.map((name) => `${name} ${median(rounds.map((one) => one.spent[name])).toFixed(1)}`);
  console.log(`${"".padEnd(12)} of the processor's ms: ${spent.join(", ")}`);
}

async function run(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "bench-escrow-"));
  const [PORT, BASE_RPC_PORT, BASE_SEPOLIA_RPC_PORT, POSTGRES_PORT] = await Promise.all(
    Array.from({ length: 4 }, async () => String(await freePort())),
  );
  const env = { PORT, BASE_RPC_PORT, BASE_SEPOLIA_RPC_PORT, POSTGRES_PORT, DATA_DIR: directory };
  const service = await startProgram("scripts/start.ts", env as Record<string, string>);
  try {
    const most = Math.max(...LOADS.map((load) => load.buyers));
    const buyers = Array.from({ length: most }, () => privateKeyToAccount(generatePrivateKey()));
    const accounts = buyers.map(({ address }) => address);
    const chain = anvilClient(`http://127.0.0.1:${BASE_RPC_PORT}`, BASE);
    await fundAccounts(chain, BASE, { accounts, usdc: 10n ** 9n, wei: 0n });
    const shop = {
      baseUrl: `http://127.0.0.1:${PORT}`,
      chain,
      pid: service.child.pid ?? 0,
      nodePort: BASE_RPC_PORT ?? "",
      buyers,
    };
    for (const sale of ALL) await measure(sale, { ...shop, buyers: buyers.slice(0, 8) }, 1);
    let isFast = true;
    for (const load of LOADS)
      isFast = (await compare({ ...shop, buyers: buyers.slice(0, load.buyers) }, load.each)) && isFast;
    console.log(isFast ? "the goal is reached" : "the goal is missed");
    process.exitCode = isFast ? 0 : 1;
  } finally {
    await stopProgram(service);
    rmSync(directory, { recursive: true, force: true });
  }
}

await run();
