// `/verify` and `/badge` beside a bare Hono route that reads one row by primary key: same machine, same run, in turns.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import autocannon from "autocannon";
import { freePort } from "../../scripts/embedded/ports.ts";
import { median, type Program, startProgram, stopProgram } from "../programs.ts";

const ROUNDS = 5;
const SECONDS = 4;
const CONNECTIONS = 16;
const GOAL = 0.6;

interface Measured {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

async function measure(url: string, duration = SECONDS): Promise<Measured> {
  const { requests, latency, non2xx, errors } = await autocannon({ url, connections: CONNECTIONS, duration });
  if (non2xx + errors > 0) throw new Error(`${url}: ${non2xx} wrong answers, ${errors} errors`);
  return { perSecond: requests.average, p50: latency.p50, p99: latency.p99 };
}

function report(name: string, runs: readonly Measured[], peer: readonly Measured[]): number {
  const ratios = runs.map((run, round) => run.perSecond / (peer[round]?.perSecond ?? Number.NaN));
  const ratio = median(ratios);
  const of = (pick: (run: Measured) => number) => Math.round(median(runs.map(pick)));
  console.log(
    `${name.padEnd(10)} ${String(of((r) => r.perSecond)).padStart(7)} /s   p50 ${of((r) => r.p50)} ms   p99 ${of((r) => r.p99)} ms   ` +
      `ratio ${ratio.toFixed(2)}   (${ratios.map((r) => r.toFixed(2)).join(" ")})`,
  );
  return ratio;
}

async function run(): Promise<boolean> {
  const dataDirectory = mkdtempSync(join(tmpdir(), "bench-reads-"));
  const ports = {
    PORT: await freePort(),
    BASE_RPC_PORT: await freePort(),
    BASE_SEPOLIA_RPC_PORT: await freePort(),
    POSTGRES_PORT: await freePort(),
  };
  const text = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
  const programs: Program[] = [];
  try {
    const service = await startProgram("scripts/start.ts", { ...text, DATA_DIR: dataDirectory });
    programs.push(service);
    const id = /\/cert\/([0-9a-f]{16})/.exec(service.lines.join("\n"))?.[1];
    const wallet = /wallet=(0x[0-9a-fA-F]{40})/.exec(service.lines.join("\n"))?.[1];
    const { service: password } = JSON.parse(readFileSync(join(dataDirectory, "postgres", "passwords.json"), "utf8"));
    const peerPort = await freePort();
    const databaseUrl = `postgres://trust_service:${password}@127.0.0.1:${ports.POSTGRES_PORT}/trust`;
    programs.push(await startProgram("bench/reads/peer.ts", { DATABASE_URL: databaseUrl, PORT: String(peerPort) }));
    const base = `http://127.0.0.1:${ports.PORT}`;
    const targets = {
      peer: `http://127.0.0.1:${peerPort}/row/${id}`,
      verify: `${base}/verify?wallet=${wallet}`,
      badge: `${base}/badge/${id}.svg`,
    };
    return await compare(targets);
  } finally {
    for (const program of programs.toReversed()) await stopProgram(program);
    rmSync(dataDirectory, { recursive: true, force: true });
  }
}

async function compare(targets: Readonly<Record<"peer" | "verify" | "badge", string>>): Promise<boolean> {
  const runs: Record<keyof typeof targets, Measured[]> = { peer: [], verify: [], badge: [] };
  for (const url of Object.values(targets)) await measure(url, 2);
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of ["peer", "verify", "badge"] as const) runs[name].push(await measure(targets[name]));
  }
  console.log(
    `${CONNECTIONS} connections, ${ROUNDS} rounds of ${SECONDS} s each, in turns; medians; ratio to the peer of the same round`,
  );
  report("bare row", runs.peer, runs.peer);
  const ratios = [report("/verify", runs.verify, runs.peer), report("/badge", runs.badge, runs.peer)];
  console.log(`goal: at least ${GOAL} of the peer: ${ratios.every((ratio) => ratio >= GOAL) ? "reached" : "missed"}`);
  return ratios.every((ratio) => ratio >= GOAL);
}

process.exitCode = (await run()) ? 0 : 1;
