// Escrowed sales end to end (hold, evaluation, release, all mined) against the same number of sales paid with plain
// `exact`: one service, one chain, the same 16 buyers, in turns.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { x402Client } from "@x402/core/client";
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from "@x402/core/http";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { NETWORKS } from "../../api/kernel/networks.ts";
import { EscrowScheme } from "../../packages/escrow/src/index.ts";
import { anvilClient } from "../../scripts/embedded/anvil.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { fundAccounts } from "../../scripts/embedded/usdc.ts";
import { median, percentile, startProgram, stopProgram } from "../programs.ts";

const BUYERS = 16;
const EACH = 4;
const ROUNDS = 3;
const BASE = NETWORKS["eip155:8453"];
const SALES = { escrow: "/escrow/demo", exact: "/test/basic" } as const;
type Sale = keyof typeof SALES;

const clientOf = (account: PrivateKeyAccount): x402Client =>
  new x402Client().register("eip155:*", new ExactEvmScheme(account)).register("eip155:*", new EscrowScheme(account));

async function sign(url: string, account: PrivateKeyAccount): Promise<string> {
  const { headers } = await fetch(url, { method: "POST" });
  const terms = decodePaymentRequiredHeader(headers.get("payment-required") ?? "");
  return encodePaymentSignatureHeader(await clientOf(account).createPaymentPayload(terms));
}

async function pay(url: string, header: string): Promise<number> {
  const started = performance.now();
  const response = await fetch(url, { method: "POST", headers: { "payment-signature": header } });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 300)}`);
  return performance.now() - started;
}

interface Round {
  readonly perMinute: number;
  readonly times: readonly number[];
}

async function measure(url: string, buyers: readonly PrivateKeyAccount[], each: number): Promise<Round> {
  const queues = await Promise.all(
    buyers.map((buyer) => Promise.all(Array.from({ length: each }, () => sign(url, buyer)))),
  );
  const times: number[] = [];
  const started = performance.now();
  await Promise.all(
    queues.map(async (queue) => {
      for (const header of queue) times.push(await pay(url, header));
    }),
  );
  return { perMinute: (times.length * 60_000) / (performance.now() - started), times };
}

async function compare(baseUrl: string, buyers: readonly PrivateKeyAccount[]): Promise<void> {
  const rounds: Record<Sale, Round[]> = { escrow: [], exact: [] };
  for (const path of Object.values(SALES)) await measure(`${baseUrl}${path}`, buyers.slice(0, 4), 1);
  for (let round = 0; round < ROUNDS; round++)
    for (const sale of ["exact", "escrow"] as const)
      rounds[sale].push(await measure(`${baseUrl}${SALES[sale]}`, buyers, EACH));
  console.log(`${ROUNDS} rounds in turns, medians; ${BUYERS} buyers with ${EACH} sales each`);
  for (const sale of ["exact", "escrow"] as const) {
    const times = rounds[sale].flatMap((round) => round.times);
    const perMinute = Math.round(median(rounds[sale].map((round) => round.perMinute)));
    const ms = [0.5, 0.95].map((share) => Math.round(percentile(times, share)));
    console.log(`${sale.padEnd(7)} ${String(perMinute).padStart(6)} sales/minute   p50 ${ms[0]} ms   p95 ${ms[1]} ms`);
  }
  const ratios = rounds.escrow.map((round, index) => round.perMinute / (rounds.exact[index]?.perMinute ?? Number.NaN));
  console.log(
    `each escrowed sale is one hold, one evaluation and one release; escrow over exact: ${median(ratios).toFixed(2)} (${ratios.map((r) => r.toFixed(2)).join(" ")})`,
  );
}

/** Mean milliseconds of each step of a sale, from the API's debug log. */
function breakdown(log: string): void {
  const spent = new Map<string, number[]>();
  for (const line of log.split("\n")) {
    if (!line.includes('"escrow demo"')) continue;
    const { step, ms } = JSON.parse(line) as { step: string; ms: number };
    spent.set(step, [...(spent.get(step) ?? []), ms]);
  }
  const mean = (values: readonly number[]) => (values.reduce((sum, ms) => sum + ms, 0) / values.length).toFixed(0);
  console.log(
    `where the time goes, ms a sale under load: ${[...spent].map(([step, values]) => `${step} ${mean(values)}`).join(", ")}`,
  );
}

async function run(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "bench-escrow-"));
  const [PORT, BASE_RPC_PORT, BASE_SEPOLIA_RPC_PORT, POSTGRES_PORT] = await Promise.all(
    Array.from({ length: 4 }, async () => String(await freePort())),
  );
  const env = { PORT, BASE_RPC_PORT, BASE_SEPOLIA_RPC_PORT, POSTGRES_PORT, DATA_DIR: directory, LOG_LEVEL: "debug" };
  const service = await startProgram("scripts/start.ts", env as Record<string, string>);
  try {
    const buyers = Array.from({ length: BUYERS }, () => privateKeyToAccount(generatePrivateKey()));
    const accounts = buyers.map(({ address }) => address);
    const chain = anvilClient(`http://127.0.0.1:${BASE_RPC_PORT}`, BASE);
    await fundAccounts(chain, BASE, { accounts, usdc: 10n ** 9n, wei: 0n });
    await compare(`http://127.0.0.1:${PORT}`, buyers);
    breakdown(readFileSync(join(directory, "logs", "api.log"), "utf8"));
  } finally {
    await stopProgram(service);
    rmSync(directory, { recursive: true, force: true });
  }
}

await run();
