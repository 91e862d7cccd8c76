// Verdicts per second, ours against a bare script: one process, one PostgreSQL with its usual durability, the same
// claims, in turns. Ours is the arbiter's service as the API runs it after the payment: the claim is checked, looked up
// by its id, its evidence gathered, and the verdict signed (detached JWS, Data Integrity, EIP-712), chained to the
// previous one by its hash, and stored. The peer (peer.ts) hashes or fetches, builds a document of about the same size,
// makes the same three signatures with jose, node:crypto and libauth, and stores it with one INSERT. Both open a
// connection for each deliverable. The peer checks and refuses nothing, guards no address, has no deadline, retry or
// second attempt, and keeps no ordered log.
import { createHash, randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../scripts/embedded/ports.ts";
import { startPostgres, withClient } from "../../scripts/embedded/postgres.ts";
import { migrate } from "../../scripts/migrate.ts";
import { median, percentile, startProgram, stopProgram } from "../programs.ts";
import { ours } from "./ours.ts";
import { PEER_TABLE, peer } from "./peer.ts";
import type { Claim, Side, SidePlan } from "./sides.ts";

/** Many short turns, so that other load on the machine hits both sides equally. */
const ROUNDS = 31;
const MS = 200;
const CONCURRENCIES = [1, 16];
const GOAL = 0.7;

const PAYLOAD = "what was delivered ".repeat(200);
const sha256 = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

interface Turn {
  readonly perSecond: number;
  /** Mean milliseconds per verdict, without its fetch. */
  readonly ownMs: number;
  /** Processor time per verdict in milliseconds, without PostgreSQL's; other programs' load hardly affects it. */
  readonly cpuMs: number;
}

let number = 0;

/** Runs this many claims at a time, for a while. */
async function turn(side: Side, claim: Claim, concurrency: number): Promise<Turn> {
  const [start, before] = [performance.now(), process.cpuUsage()];
  let [done, ownMs] = [0, 0];
  const work = async () => {
    while (performance.now() - start < MS) {
      const began = performance.now();
      const { verdict, fetchMs } = await side.decide(claim, ++number);
      if (verdict !== "release") throw new Error(`a verdict is ${verdict}`);
      ownMs += performance.now() - began - fetchMs;
      done++;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  const { user, system } = process.cpuUsage(before);
  const perSecond = (done * 1_000) / (performance.now() - start);
  return { perSecond, ownMs: ownMs / done, cpuMs: (user + system) / 1_000 / done };
}

type Sides = Readonly<Record<"ours" | "peer", Side>>;

/** Prints the figures for one kind of claim; returns the ratio of ours to the peer's. */
async function compare(sides: Sides, claim: Claim, concurrency: number): Promise<number> {
  for (const side of [sides.ours, sides.peer]) await turn(side, claim, concurrency);
  const runs: Record<keyof Sides, Turn>[] = [];
  for (let round = 0; round < ROUNDS; round++)
    runs.push({
      ours: await turn(sides.ours, claim, concurrency),
      peer: await turn(sides.peer, claim, concurrency),
    });
  const of = (side: keyof Sides, figure: keyof Turn) => median(runs.map((run) => run[side][figure]));
  const ratios = runs.map((run) => run.ours.perSecond / run.peer.perSecond);
  const figures = (side: keyof Sides) =>
    `${of(side, "perSecond").toFixed(0).padStart(5)} /s (${of(side, "ownMs").toFixed(2)} ms without the fetch, CPU ${of(side, "cpuMs").toFixed(2)} ms)`;
  const spread = [0.1, 0.9].map((share) => percentile(ratios, share).toFixed(2)).join(" to ");
  console.log(
    `${claim.category.padEnd(13)} x${String(concurrency).padEnd(3)} ours ${figures("ours")}   peer ${figures("peer")}   ` +
      `ratio ${median(ratios).toFixed(2)} (p10 to p90: ${spread})`,
  );
  return median(ratios);
}

async function compareAll(sides: Sides, claims: readonly Claim[]): Promise<boolean> {
  console.log(`${ROUNDS} rounds of ${MS} ms each, in turns; medians; the ratio is of verdicts a second`);
  const ratios: number[] = [];
  for (const claim of claims)
    for (const concurrency of CONCURRENCIES) ratios.push(await compare(sides, claim, concurrency));
  const reached = ratios.every((ratio) => ratio >= GOAL);
  console.log(`goal: at least ${GOAL} of the bare script: ${reached ? "reached" : "missed"}`);
  return reached;
}

async function run(): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "bench-arbiter-"));
  chmodSync(folder, 0o711);
  const ends: (() => Promise<void>)[] = [];
  try {
    const postgres = await startPostgres({ directory: join(folder, "postgres"), port: await freePort() });
    ends.push(postgres.stop);
    await migrate(postgres.ownerUrl);
    await withClient(postgres.ownerUrl, (client) => client.query(PEER_TABLE));
    const port = await freePort();
    const server = await startProgram("bench/arbiter/server.ts", { PORT: String(port) });
    ends.push(() => stopProgram(server));
    const origin = `http://127.0.0.1:${port}`;
    const plan: SidePlan = {
      databaseUrl: postgres.ownerUrl,
      baseUrl: "https://trust.example",
      signingSeed: randomBytes(32),
      arbiterKey: `0x${randomBytes(32).toString("hex")}`,
      origin,
    };
    const sides = { ours: await ours(plan), peer: await peer(plan) };
    ends.push(sides.ours.end, sides.peer.end);
    const body = Buffer.from(await (await fetch(origin)).arrayBuffer());
    const hash = { category: "payload-hash", conditions: { payload_text: PAYLOAD, expected_sha256: sha256(PAYLOAD) } };
    const fetched = { category: "http-delivery", conditions: { url: `${origin}/`, expect_sha256: sha256(body) } };
    return await compareAll(
      sides,
      [hash, fetched].map((claim) => ({ ...claim, deal_ref: "order 4711" })),
    );
  } finally {
    for (const end of ends.toReversed()) await end();
    rmSync(folder, { recursive: true, force: true });
  }
}

process.exitCode = (await run()) ? 0 : 1;
