import { rmSync } from "node:fs";
import { join } from "node:path";
import { HISTORY_TABLES, historyTables } from "../../../indexer/history/tables.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { peakMiB, processorMs } from "../../processor.ts";
import { startProgram, stopProgram } from "../../programs.ts";
import { type Goal, judge } from "../goals.ts";
import { INDEXER_SETTINGS } from "../indexer.ts";
import { type Stage, withStage } from "../stage.ts";
import { writeCsv } from "../transfers-csv.ts";

// Transfers a processor's second: `npm run index:preload` and PostgreSQL together, beside the same rows made by
// PostgreSQL's SQL alone.

/** With more transfers the peer takes too long, and only the preload itself is measured. */
const MOST_FOR_PEER = 2_000_000;
const SAMPLE_MS = 100;
const MOST_MIB = 4_096;

interface Run {
  readonly seconds: number;
  /** Of the program and PostgreSQL. */
  readonly cpuSeconds: number;
  /** The program's. */
  readonly peakMiB: number;
}

interface Ran {
  readonly file: string;
  readonly env: Readonly<Record<string, string>>;
  /** Its last line. */
  readonly last: RegExp;
  readonly args?: readonly string[];
}

async function measure({ file, env, last, args = [] }: Ran): Promise<Run> {
  const [started, before] = [performance.now(), processorMs(process.pid)];
  let [pid, peak] = [0, 0];
  const sampler = setInterval(() => {
    peak = Math.max(peak, peakMiB(pid) || 0);
  }, SAMPLE_MS);
  const spawned = (id: number) => {
    pid = id;
  };
  try {
    await stopProgram(await startProgram(file, { ...env }, { ready: last, args, spawned }));
  } finally {
    clearInterval(sampler);
  }
  const cpuSeconds = (processorMs(process.pid) - before) / 1_000;
  return { seconds: (performance.now() - started) / 1_000, cpuSeconds, peakMiB: peak };
}

type Compared = "full" | "selective";

/** Rows that one has and the other has not, in all tables. */
async function countDifferences(databaseUrl: string, scope: Compared): Promise<number> {
  return withClient(databaseUrl, async (db) => {
    let differences = 0;
    for (const table of historyTables(scope)) {
      const names = HISTORY_TABLES[table].join();
      const [ours, peers] = ["history", "peer"].map((schema) => `select ${names} from ${schema}.${table}`);
      const { rows } = await db.query<{ count: number }>(
        `select count(*)::int as count from ((${ours} except all ${peers}) union all (${peers} except all ${ours})) different`,
      );
      differences += rows[0]?.count ?? Number.NaN;
    }
    return differences;
  });
}

async function compare({ env, chain, folder }: Stage, scope: Compared): Promise<readonly Goal[]> {
  const file = join(folder, "transfers.csv");
  await writeCsv(chain, file);
  const transfers = chain.last * chain.perBlock;
  const settings = { ...INDEXER_SETTINGS, ...env, INDEX_SCOPE: scope, INDEX_HISTORY: "history" };
  const ours = await measure({ file: "scripts/index-preload.ts", env: settings, last: /^history: /, args: [file] });
  const peer = transfers <= MOST_FOR_PEER ? await measurePeer({ ...settings, FILE: file }) : null;
  rmSync(file);
  const rate = ({ cpuSeconds }: Run) => transfers / cpuSeconds;
  for (const [name, run] of Object.entries({ "index:preload": ours, "PostgreSQL's SQL": peer }))
    if (run !== null)
      console.log(
        `${scope}, ${name}: ${run.seconds.toFixed(1)} s, ${run.cpuSeconds.toFixed(1)} s of processors, ${Math.round(rate(run))} transfers a processor's second, ${Math.round(run.peakMiB)} MiB`,
      );
  return [
    { name: `${scope}: transfers a processor's second`, value: rate(ours), limit: 40_000, isFloor: true },
    { name: `${scope}: peak memory of the program, MiB`, value: ours.peakMiB, limit: MOST_MIB, isFloor: false },
    ...(peer === null
      ? []
      : [
          { name: `${scope}: over PostgreSQL's SQL`, value: rate(ours) / rate(peer), limit: 2.8, isFloor: true },
          {
            name: `${scope}: rows that differ`,
            value: await countDifferences(env.DATABASE_URL, scope),
            limit: 0,
            isFloor: false,
          },
        ]),
  ];
}

const measurePeer = (env: Readonly<Record<string, string>>) =>
  measure({ file: "bench/index/preload/peer.ts", env, last: /^done/ });

/** @param transfers in each scope's file. Returns whether all goals were met. */
export async function runPreload(transfers: number): Promise<boolean> {
  const payments = await withStage({ transfers, authorisedEvery: 1 }, (stage) => compare(stage, "selective"));
  const full = transfers <= MOST_FOR_PEER ? await withStage({ transfers }, (stage) => compare(stage, "full")) : [];
  return judge([...payments, ...full]);
}
