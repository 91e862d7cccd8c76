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
import { deploySettlementBatch } from "../../test/support/chain/settlement-batch.ts";
import { median, type Program, percentile, startProgram, stopProgram } from "../programs.ts";

/** Payers at once, and how many payments each makes, one after the other. */
const LOADS = [
  { payers: 1, each: 40, goal: 1.3 },
  { payers: 16, each: 12, goal: 2.5 },
  { payers: 64, each: 5, goal: 4 },
  { payers: 128, each: 3, goal: 2.5 },
] as const;
const PAYERS = 128;
const ROUNDS = 3;
/** Of the peer's time. */
const GOALS = { p50Alone: 0.7, p99At64: 0.5 };
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

/** Milliseconds until the answer; null if it was no success, as the peer's is not now and then. */
async function pay(url: string, header: string): Promise<number | null> {
  const started = performance.now();
  const response = await fetch(url, { method: "POST", headers: { "payment-signature": header } });
  await response.arrayBuffer();
  return response.status === 200 ? performance.now() - started : null;
}

interface Round {
  readonly p50: number;
  readonly p99: number;
  /** Those that succeeded. */
  readonly perSecond: number;
  readonly lost: number;
}

async function measure(url: string, payers: readonly PrivateKeyAccount[], each: number): Promise<Round> {
  const queues = await Promise.all(payers.map((payer) => sign(url, payer, each)));
  const answers: (number | null)[] = [];
  const started = performance.now();
  await Promise.all(
    queues.map(async (queue) => {
      for (const header of queue) answers.push(await pay(url, header));
    }),
  );
  const times = answers.filter((time) => time !== null);
  const perSecond = (times.length * 1000) / (performance.now() - started);
  const lost = answers.length - times.length;
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99), perSecond, lost };
}

/** Returns whether every goal is reached. */
async function compare(urls: Sides, payers: readonly PrivateKeyAccount[]): Promise<boolean> {
  for (const url of Object.values(urls)) await measure(url, payers.slice(0, 16), 4);
  console.log(`medians of ${ROUNDS} rounds in turns; ratios are ours over the peer's of the same round`);
  let isReached = true;
  const check = (what: string, ratio: number, { least = 0, most = Number.POSITIVE_INFINITY }) => {
    const isMet = ratio >= least && ratio <= most;
    const goal = least > 0 ? `at least ${least}` : `at most ${most}`;
    console.log(`  ${what} ${ratio.toFixed(2)}, goal ${goal}: ${isMet ? "reached" : "missed"}`);
    isReached &&= isMet;
  };
  for (const { payers: count, each, goal } of LOADS) {
    const rounds: Record<keyof Sides, Round[]> = { ours: [], peer: [] };
    for (let round = 0; round < ROUNDS; round++)
      for (const side of ["peer", "ours"] as const)
        rounds[side].push(await measure(urls[side], payers.slice(0, count), each));
    console.log(`${count} payers, ${each} payments each`);
    for (const side of ["peer", "ours"] as const) {
      const of = (pick: (round: Round) => number) => median(rounds[side].map(pick)).toFixed(0).padStart(6);
      console.log(
        `  ${side} ${of((r) => r.perSecond)} payments/s, p50${of((r) => r.p50)} ms, p99${of((r) => r.p99)} ms`,
      );
    }
    const ratio = (pick: (round: Round) => number) =>
      median(rounds.ours.map((ours, round) => pick(ours) / pick(rounds.peer[round] as Round)));
    const throughput = ratio((r) => r.perSecond);
    check("throughput", throughput, { least: goal });
    const [p50, p99] = [ratio((r) => r.p50), ratio((r) => r.p99)];
    if (count === 1) check("p50", p50, { most: GOALS.p50Alone });
    if (count === 64) check("p99", p99, { most: GOALS.p99At64 });
  }
  return isReached;
}

const TRACED = 30;

/** Where our time goes: mean milliseconds per gate command, from its own debug log. */
async function breakdown(url: string, program: Program, payer: PrivateKeyAccount): Promise<void> {
  const before = program.lines.length;
  const times: number[] = [];
  for (const header of await sign(url, payer, TRACED)) times.push((await pay(url, header)) ?? Number.NaN);
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
    await deploySettlementBatch(anvil.client);
    const payers = Array.from({ length: PAYERS }, () => privateKeyToAccount(generatePrivateKey()));
    const [key, ownKey] = [generatePrivateKey(), generatePrivateKey()];
    await fundAccounts(anvil.client, BASE, {
      accounts: payers.map(({ address }) => address),
      usdc: 10n ** 10n,
      wei: 0n,
    });
    for (const one of [key, ownKey])
      await anvil.client.setBalance({ address: privateKeyToAccount(one).address, value: 10n ** 22n });
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
      FACILITATOR_PRIVATE_KEY: ownKey,
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
    const isReached = await compare(urls, payers);
    const traced = await begin(
      "api/main.ts",
      { ...ours, PORT: String(ports.traced), LOG_LEVEL: "debug" },
      /"listening"/,
    );
    const [payer] = payers;
    if (payer !== undefined) await breakdown(`http://127.0.0.1:${ports.traced}/test/basic`, traced, payer);
    return isReached;
  } finally {
    for (const end of ends.toReversed()) await end();
    rmSync(folder, { recursive: true, force: true });
  }
}

process.exitCode = (await run()) ? 0 : 1;
