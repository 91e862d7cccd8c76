// What a read costs as the index grows: `/verify` and the score, without payment and HTTP, for small wallets and for the largest, which
// takes part in a quarter of all transfers. The indexes are made by the preloader from generated chains of 90 days, and taken over by
// Ponder; then all sizes are read in turns.
//
//   npm run bench:score -- [sizes, smallest first; default 100000 1000000 5000000]
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../scripts/embedded/ports.ts";
import { grantApiRole, startPostgres, withClient } from "../../scripts/embedded/postgres.ts";
import { migrate } from "../../scripts/migrate.ts";
import { percentile } from "../programs.ts";
import { type Loaded, loadIndex } from "./loaded.ts";

const ROUNDS = 10;
const CALLS = 100;
const BATCH = 25;
const DAY_MS = 86_400_000;

type Read = (loaded: Loaded, n: number) => Promise<unknown>;

const READS = {
  "/verify small": ({ readings, small, now }, n) => readings.verify(small(n), now),
  "/verify largest": ({ readings, largest, now }) => readings.verify(largest, now),
  "score small": ({ readings, small, now }, n) => readings.score([small(n)], now),
  "score largest": ({ readings, largest, now }) => readings.score([largest], now),
  "score 25 small": ({ readings, small, now }, n) =>
    readings.score(
      Array.from({ length: BATCH }, (_, k) => small(n * BATCH + k)),
      now,
    ),
} as const satisfies Readonly<Record<string, Read>>;

type Name = keyof typeof READS;
const NAMES = Object.keys(READS) as Name[];

interface Cost {
  /** Mean, over a few wallets. */
  readonly pages: number;
  readonly p50: number;
  readonly p99: number;
}

async function pagesOf(loaded: Loaded, name: Name): Promise<number> {
  const few = [1, 2, 3, 4, 5];
  let sum = 0;
  for (const n of few) sum += await loaded.readings.pages(() => READS[name](loaded, n));
  return sum / few.length;
}

async function timesOf(loaded: Loaded, name: Name, round: number): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < CALLS; n += 1) {
    const started = performance.now();
    const answer = await READS[name](loaded, round * CALLS + n);
    times.push(performance.now() - started);
    if (answer === null) throw new Error(`${name}: the index did not answer`);
  }
  return times;
}

async function measure(all: readonly Loaded[]): Promise<ReadonlyMap<Loaded, Readonly<Record<Name, Cost>>>> {
  const times = new Map(all.map((loaded) => [loaded, new Map<Name, number[]>(NAMES.map((name) => [name, []]))]));
  // An uncounted round, which prepares statements and reads pages in.
  for (let round = -1; round < ROUNDS; round += 1)
    for (const name of NAMES)
      for (const loaded of all) {
        const some = await timesOf(loaded, name, round + 1);
        if (round >= 0)
          times
            .get(loaded)
            ?.get(name)
            ?.push(...some);
      }
  const costs = new Map<Loaded, Readonly<Record<Name, Cost>>>();
  for (const [loaded, byName] of times) {
    const entries: [Name, Cost][] = [];
    for (const [name, ms] of byName)
      entries.push([name, { pages: await pagesOf(loaded, name), p50: percentile(ms, 0.5), p99: percentile(ms, 0.99) }]);
    costs.set(loaded, Object.fromEntries(entries) as Record<Name, Cost>);
  }
  return costs;
}

/** The largest wallet's pages when the newest, half and the last few of its days are in the window. */
async function reportOldRows({ readings, largest, now, transfers }: Loaded): Promise<void> {
  const pages: string[] = [];
  for (const days of [0, 45, 80, 90]) {
    const later = new Date(now.getTime() + days * DAY_MS);
    pages.push(`${await readings.pages(() => readings.verify(largest, later))} after ${days} more days`);
  }
  console.log(`old rows are not read: /verify of the largest wallet of ${transfers}, pages: ${pages.join(", ")}`);
}

function reportCosts(costs: ReadonlyMap<Loaded, Readonly<Record<Name, Cost>>>): void {
  console.log(`\n${ROUNDS} rounds of ${CALLS} calls in turns, one at a time; pages | p50 ms | p99 ms`);
  console.log(`${"".padEnd(18)}${[...costs.keys()].map(({ transfers }) => String(transfers).padStart(26)).join("")}`);
  for (const name of NAMES) {
    const cells = [...costs.values()].map(({ [name]: { pages, p50, p99 } }) =>
      `${pages.toFixed(0)} | ${p50.toFixed(2)} | ${p99.toFixed(2)}`.padStart(26),
    );
    console.log(name.padEnd(18) + cells.join(""));
  }
}

/** Prints the largest index's costs over the smallest's, with the goals; returns whether all were met. */
function judge(costs: ReadonlyMap<Loaded, Readonly<Record<Name, Cost>>>): boolean {
  const [small, large] = [[...costs.values()].at(0), [...costs.values()].at(-1)];
  if (small === undefined || large === undefined) throw new Error("nothing was measured");
  const ratio = (name: Name, of: keyof Cost) => large[name][of] / small[name][of];
  const goals: readonly (readonly [string, number, number])[] = [
    ["/verify largest, pages", ratio("/verify largest", "pages"), 1.2],
    ["score largest, pages", ratio("score largest", "pages"), 1.5],
    ["/verify largest, p99", ratio("/verify largest", "p99"), 1.5],
    ["score largest, p99", ratio("score largest", "p99"), 1.5],
    ["/verify small, p50", ratio("/verify small", "p50"), 1.3],
    ["score small, p50", ratio("score small", "p50"), 1.3],
    ["score of 25 small over one", large["score 25 small"].p50 / large["score small"].p50, 10],
  ];
  console.log("\nthe largest index over the smallest; the batch over one score, both in the largest");
  for (const [name, value, limit] of goals)
    console.log(
      `${name.padEnd(30)} ${value.toFixed(2).padStart(6)}   at most ${String(limit).padEnd(4)} ${value <= limit ? "reached" : "missed"}`,
    );
  return goals.every(([, value, limit]) => value <= limit);
}

async function run(sizes: readonly number[]): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "bench-score-"));
  chmodSync(folder, 0o711);
  const all: Loaded[] = [];
  const settings = ["shared_buffers=512MB", "max_wal_size=4GB"];
  const postgres = await startPostgres({ directory: join(folder, "postgres"), port: await freePort(), settings });
  try {
    await migrate(postgres.ownerUrl);
    await grantApiRole(postgres.ownerUrl);
    for (const transfers of sizes) {
      const name = `of_${transfers}`;
      const inIt = (url: string) => url.replace(/[^/]+$/, name);
      await withClient(postgres.ownerUrl.replace(/[^/]+$/, "postgres"), async (db) => {
        await db.query(`create database ${name} template trust`);
      });
      const urls = { ownerUrl: inIt(postgres.ownerUrl), apiUrl: inIt(postgres.apiUrl) };
      all.push(await loadIndex({ ...urls, transfers, folder }));
    }
    console.log(
      `load of the machine: ${loadavg()
        .map((one) => one.toFixed(1))
        .join(" ")}`,
    );
    const costs = await measure(all);
    reportCosts(costs);
    for (const loaded of all) await reportOldRows(loaded);
    return judge(costs);
  } finally {
    for (const { readings } of all) await readings.close();
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const given = process.argv.slice(2).map(Number);
const sizes = given.length > 0 ? given : [100_000, 1_000_000, 5_000_000];
if (sizes.length < 2 || !sizes.every((size) => Number.isSafeInteger(size) && size >= 100)) {
  console.error("Usage: npm run bench:score -- [two or more numbers of transfers, smallest first]");
  process.exit(1);
}
process.exitCode = (await run(sizes)) ? 0 : 1;
