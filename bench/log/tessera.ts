import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type pg from "pg";
import type { World } from "../payments/world.ts";
import { ROOT } from "../programs.ts";
import { type Figure, percentile } from "../table.ts";
import { copies, treeSize, whenTaken } from "./entries.ts";
import { duringSales } from "./integration.ts";

const call = promisify(execFile);

const WAITING = 12_000;
/** Sequential submissions, to measure the latency of each. */
const PACED = { entries: 1_000, perSecond: 50 };

/**
 * Compares our log with Tessera's POSIX log on the same disk, with the same entries. Ours makes and signs each document, and
 * stores the entries in PostgreSQL. Tessera gets them ready-made. Both sign at most one checkpoint per second.
 */
export async function compareWithTessera(world: World, owner: pg.Client): Promise<readonly Figure[]> {
  const program = await build();
  if (program === null) return [];
  const folder = mkdtempSync(join(tmpdir(), "bench-tessera-"));
  const run = async (entries: readonly Buffer[], mode: string) => {
    const [log, file] = [join(folder, mode), join(folder, `${mode}.entries`)];
    writeFileSync(file, `${entries.join("\n")}\n`);
    const { stdout } = await call(program, [log, file, mode], { maxBuffer: 2 ** 26 });
    return { log, ...(JSON.parse(stdout) as { perSecond: number; times: readonly number[] }) };
  };
  try {
    await whenTaken(owner);
    await copies(owner, WAITING);
    const [from, before] = [await treeSize(owner), await bytesOf(owner)];
    const ours = await duringSales(world, async () => {
      await whenTaken(owner);
      return (await treeSize(owner)) - from;
    });
    const entries = await entriesFrom(owner, from);
    const size = ((await bytesOf(owner)) - before) / entries.length;
    let log = "";
    const peer = await duringSales(world, async () => {
      ({ log } = await run(entries, "bulk"));
      return entries.length;
    });
    const content = entries.reduce((sum, entry) => sum + entry.length, 0) / entries.length;
    const times = await pace(owner);
    const paced = await run(entries.slice(0, PACED.entries), String(PACED.perSecond));
    const among = `at ${PACED.perSecond}/s, ms from submission to a signed checkpoint`;
    return [
      { name: "entries/s integrated during sales", ours: ours.perSecond, peer: peer.perSecond },
      { name: "sales/s meanwhile", ours: ours.sales, peer: peer.sales },
      { name: `${among}, p50`, ours: percentile(times, 0.5), peer: percentile(paced.times, 0.5) },
      { name: `${among}, p99`, ours: percentile(times, 0.99), peer: percentile(paced.times, 0.99) },
      { name: `bytes per entry of ${Math.round(content)} bytes`, ours: size, peer: bytesIn(log) / entries.length },
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Builds tessera/main.go. Returns null and prints a line if Go is not installed. */
async function build(): Promise<string | null> {
  const folder = join(ROOT, "node_modules/.cache/bench-tessera");
  const program = join(folder, "tessera");
  mkdirSync(folder, { recursive: true });
  try {
    await call("go", ["build", "-o", program, "."], { cwd: join(ROOT, "bench/log/tessera") });
    return program;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    console.log("Without Tessera: Go is not installed.");
    return null;
  }
}

async function entriesFrom(owner: pg.Client, from: number): Promise<readonly Buffer[]> {
  const text = "SELECT entry FROM log_entry WHERE idx >= $1 ORDER BY idx";
  const { rows } = await owner.query<{ entry: Buffer }>(text, [from]);
  return rows.map(({ entry }) => entry);
}

/** Returns the size of the entries, tiles, and checkpoints, with their indexes. */
async function bytesOf(owner: pg.Client): Promise<number> {
  const { rows } = await owner.query<{ bytes: string }>(
    `SELECT sum(pg_total_relation_size(name::regclass)) AS bytes
      FROM unnest(ARRAY['log_entry', 'log_tile', 'log_checkpoint']) AS name`,
  );
  return Number(rows[0]?.bytes);
}

/** Returns the size of a folder on disk. */
const bytesIn = (folder: string): number =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).reduce(
    (sum, name) => sum + statSync(join(folder, name)).blocks * 512,
    0,
  );

/** Adds certificates in sequence. Returns the milliseconds from each commit to a signed checkpoint with it. */
async function pace(owner: pg.Client): Promise<readonly number[]> {
  await whenTaken(owner);
  const from = await treeSize(owner);
  const committed: number[] = [];
  const times: number[] = [];
  const began = performance.now();
  const look = async () => {
    const taken = (await treeSize(owner)) - from;
    while (times.length < Math.min(taken, committed.length))
      times.push(performance.now() - (committed[times.length] as number));
  };
  for (let at = 0; at < PACED.entries; at++) {
    while (performance.now() < began + (at * 1_000) / PACED.perSecond) await look();
    await copies(owner, 1);
    committed.push(performance.now());
  }
  while (times.length < PACED.entries) {
    await look();
    await sleep(1);
  }
  return times;
}
