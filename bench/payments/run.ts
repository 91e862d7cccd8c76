// One of our paid routes against a bare `@x402/hono` server with the stock middleware and an empty handler: the same
// chain, facilitator, machine and payers, in turns. Payments are signed beforehand, so only the servers' time is
// measured.
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { x402Client } from "@x402/core/client";
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from "@x402/core/http";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { NETWORKS } from "../../api/kernel/networks.ts";
import { startAnvil } from "../../scripts/embedded/anvil.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { grantApiRole, startPostgres } from "../../scripts/embedded/postgres.ts";
import { fundAccounts, installUsdc } from "../../scripts/embedded/usdc.ts";
import { migrate } from "../../scripts/migrate.ts";
import { median, type Program, percentile, startProgram, stopProgram } from "../programs.ts";

const PAYERS = 16;
const EACH = 8;
const SEQUENTIAL = 30;
const ROUNDS = 3;
const GOAL = 0.9;
const BASE = NETWORKS["eip155:8453"];
const PAY_TO = {
  ours: "0x00000000000000000000000000000000c0ffee01",
  peer: "0x00000000000000000000000000000000c0ffee02",
};

type Sides = Readonly<Record<"ours" | "peer", string>>;

/** Headers of `count` payments, signed by the stock client for the terms that the server asks for. */
async function sign(url: string, account: PrivateKeyAccount, count: number): Promise<string[]> {
  const { headers } = await fetch(url, { method: "POST" });
  const terms = decodePaymentRequiredHeader(headers.get("payment-required") ?? "");
  const client = new x402Client().register("eip155:*", new ExactEvmScheme(account));
  const signed = Array.from({ length: count }, () => client.createPaymentPayload(terms));
  return (await Promise.all(signed)).map(encodePaymentSignatureHeader);
}

async function pay(url: string, header: string): Promise<number> {
  const started = performance.now();
  const response = await fetch(url, { method: "POST", headers: { "payment-signature": header } });
  await response.arrayBuffer();
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}`);
  return performance.now() - started;
}

interface Round {
  readonly p50: number;
  readonly p95: number;
  readonly perSecond: number;
}

async function measure(url: string, payers: readonly PrivateKeyAccount[]): Promise<Round> {
  const [first] = payers;
  if (first === undefined) throw new Error("no payer");
  const alone: number[] = [];
  for (const header of await sign(url, first, SEQUENTIAL)) alone.push(await pay(url, header));
  const queues = await Promise.all(payers.map((payer) => sign(url, payer, EACH)));
  const started = performance.now();
  await Promise.all(
    queues.map(async (queue) => {
      for (const header of queue) await pay(url, header);
    }),
  );
  const perSecond = (PAYERS * EACH * 1000) / (performance.now() - started);
  return { p50: percentile(alone, 0.5), p95: percentile(alone, 0.95), perSecond };
}

async function compare(urls: Sides, payers: readonly PrivateKeyAccount[]): Promise<number> {
  const rounds: Record<keyof Sides, Round[]> = { ours: [], peer: [] };
  for (const url of Object.values(urls)) await measure(url, payers.slice(0, 4));
  for (let round = 0; round < ROUNDS; round++) {
    for (const side of ["peer", "ours"] as const) rounds[side].push(await measure(urls[side], payers));
  }
  console.log(
    `${ROUNDS} rounds in turns, medians; ${SEQUENTIAL} payments one by one, then ${PAYERS} payers with ${EACH} each`,
  );
  for (const side of ["peer", "ours"] as const) {
    const of = (pick: (round: Round) => number) => median(rounds[side].map(pick)).toFixed(1).padStart(7);
    console.log(
      `${side}   p50 ${of((r) => r.p50)} ms   p95 ${of((r) => r.p95)} ms   ${of((r) => r.perSecond)} payments/s`,
    );
  }
  const ratios = rounds.ours.map((ours, round) => ours.perSecond / (rounds.peer[round]?.perSecond ?? Number.NaN));
  const latency = rounds.ours.map((ours, round) => ours.p50 / (rounds.peer[round]?.p50 ?? Number.NaN));
  console.log(
    `throughput, ours over theirs: ${median(ratios).toFixed(2)} (${ratios.map((r) => r.toFixed(2)).join(" ")}); p50: ${median(latency).toFixed(2)}`,
  );
  return median(ratios);
}

/** Where our time goes: mean milliseconds per gate command, from its own debug log. */
async function breakdown(url: string, program: Program, payer: PrivateKeyAccount): Promise<void> {
  const before = program.lines.length;
  const times: number[] = [];
  for (const header of await sign(url, payer, SEQUENTIAL)) times.push(await pay(url, header));
  const spent = new Map<string, number>();
  for (const line of program.lines.slice(before)) {
    const entry = JSON.parse(line) as { msg: string; command?: string; ms?: number };
    if (entry.msg !== "gate" || entry.command === undefined) continue;
    const part =
      { insert: "journal", write: "journal", take: "journal", submit: "settle" }[entry.command] ?? entry.command;
    spent.set(part, (spent.get(part) ?? 0) + (entry.ms ?? 0) / SEQUENTIAL);
  }
  const parts = [...spent].map(([part, ms]) => `${part} ${ms.toFixed(1)}`);
  const total = times.reduce((sum, ms) => sum + ms, 0) / times.length;
  console.log(`where our time goes, ms a payment of ${total.toFixed(1)}: ${parts.join(", ")}`);
}

async function run(): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "bench-payments-"));
  chmodSync(folder, 0o711);
  const ends: (() => Promise<void>)[] = [];
  try {
    const postgres = await startPostgres({ directory: join(folder, "postgres"), port: await freePort() });
    ends.push(postgres.stop);
    await migrate(postgres.ownerUrl);
    await grantApiRole(postgres.ownerUrl);
    const options = ["--mixed-mining", "--block-time", "2", "--slots-in-an-epoch", "3"];
    const anvil = await startAnvil({ network: BASE, port: await freePort(), options });
    ends.push(() => anvil.process.stop());
    const sepolia = await startAnvil({
      network: NETWORKS["eip155:84532"],
      port: await freePort(),
      options: ["--no-mining"],
    });
    ends.push(() => sepolia.process.stop());
    await installUsdc(anvil.client, BASE);
    const payers = Array.from({ length: PAYERS }, () => privateKeyToAccount(generatePrivateKey()));
    const key = generatePrivateKey();
    await fundAccounts(anvil.client, BASE, {
      accounts: payers.map(({ address }) => address),
      usdc: 10n ** 10n,
      wei: 0n,
    });
    await anvil.client.setBalance({ address: privateKeyToAccount(key).address, value: 10n ** 22n });
    const begin = async (file: string, env: Record<string, string>, ready?: RegExp) => {
      const program = await startProgram(file, { BASE_RPC_URL: anvil.rpcUrl, ...env }, { ready });
      ends.push(() => stopProgram(program));
      return program;
    };
    const ports = {
      facilitator: await freePort(),
      peer: await freePort(),
      ours: await freePort(),
      traced: await freePort(),
    };
    const facilitator = `http://127.0.0.1:${ports.facilitator}`;
    await begin("bench/payments/facilitator.ts", { PORT: String(ports.facilitator), FACILITATOR_PRIVATE_KEY: key });
    await begin("bench/payments/peer.ts", {
      PORT: String(ports.peer),
      FACILITATOR_URL: facilitator,
      PAY_TO_ADDRESS: PAY_TO.peer,
    });
    const ours = {
      DATABASE_URL: postgres.apiUrl,
      BASE_SEPOLIA_RPC_URL: sepolia.rpcUrl,
      FACILITATOR_URL: facilitator,
      PAY_TO_ADDRESS: PAY_TO.ours,
      HOST: "localhost",
      RATE_LIMIT_PER_MINUTE: "0",
      SIGNING_KEY: randomBytes(32).toString("base64url"),
      SEALING_KEY: randomBytes(32).toString("base64url"),
      DECOY_SEED: randomBytes(32).toString("base64url"),
      ARBITER_PRIVATE_KEY: `0x${randomBytes(32).toString("hex")}`,
    };
    await begin("api/main.ts", { ...ours, PORT: String(ports.ours) }, /"listening"/);
    const urls = { ours: `http://127.0.0.1:${ports.ours}/test/basic`, peer: `http://127.0.0.1:${ports.peer}/paid` };
    const ratio = await compare(urls, payers);
    const traced = await begin(
      "api/main.ts",
      { ...ours, PORT: String(ports.traced), LOG_LEVEL: "debug" },
      /"listening"/,
    );
    const [payer] = payers;
    if (payer !== undefined) await breakdown(`http://127.0.0.1:${ports.traced}/test/basic`, traced, payer);
    console.log(`goal: at least ${GOAL} of the peer's throughput: ${ratio >= GOAL ? "reached" : "missed"}`);
    return ratio >= GOAL;
  } finally {
    for (const end of ends.toReversed()) await end();
    rmSync(folder, { recursive: true, force: true });
  }
}

process.exitCode = (await run()) ? 0 : 1;
