// The index's own speed and size: Ponder with the unmodified configuration beside a bare viem getLogs + COPY loader, over the same
// generated chain, PostgreSQL and machine, one after the other. The chain is served by a third process.
//
//   npm run bench:index -- [transfers, default 1000000]
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { freePort } from "../../scripts/embedded/ports.ts";
import { startPostgres, withClient } from "../../scripts/embedded/postgres.ts";
import { type Program, startProgram, stopProgram } from "../programs.ts";
import { generateChain } from "./generated-chain.ts";
import { type IndexerRun, runIndexer } from "./indexer.ts";

const PER_BLOCK = 100;
const GIB = 1_024;

interface Bench {
  readonly env: Readonly<Record<"DATABASE_URL" | "BASE_RPC_URL", string>>;
  readonly transfers: number;
  readonly lastBlock: number;
}

interface Speed {
  readonly perSecond: number;
  /** Of the process itself; other programs' load hardly affects it. */
  readonly perCpuSecond: number;
}

async function runBare({ env, transfers, lastBlock }: Bench): Promise<Speed> {
  const program = await startProgram(
    "bench/index/peer.ts",
    { ...env, LAST_BLOCK: String(lastBlock) },
    { ready: /^done/ },
  );
  const [, loaded, ms = Number.NaN, cpuMs = Number.NaN] = program.lines.at(-1)?.split(" ").map(Number) ?? [];
  if (loaded !== transfers) throw new Error(`the bare loader read ${loaded} of ${transfers} transfers`);
  await stopProgram(program);
  return { perSecond: (transfers * 1_000) / ms, perCpuSecond: (transfers * 1_000) / cpuMs };
}

/** Bytes on disk of all tables in the schemas of this pattern, with their indexes. */
async function bytesOf(db: pg.Client, pattern: string): Promise<number> {
  const { rows } = await db.query<{ bytes: number }>(
    `select coalesce(sum(pg_total_relation_size(c.oid)), 0)::float8 as bytes
      from pg_class c join pg_namespace n on n.oid = relnamespace where nspname ~ $1 and relkind = 'r'`,
    [pattern],
  );
  return rows[0]?.bytes ?? Number.NaN;
}

async function dropSchemas(db: pg.Client, pattern: string): Promise<void> {
  const { rows } = await db.query<{ schema: string }>(
    "select quote_ident(nspname) as schema from pg_namespace where nspname ~ $1",
    [pattern],
  );
  for (const { schema } of rows) await db.query(`drop schema ${schema} cascade`);
}

interface Measured {
  readonly bare: readonly Speed[];
  readonly syncing: IndexerRun;
  /** Restarted on the index it made. */
  readonly again: IndexerRun;
  readonly cached: IndexerRun;
  readonly authorised: IndexerRun;
  readonly rowBytes: number;
  readonly syncBytes: number;
}

const INDEXES = "^live";
const SYNC = "^ponder_sync$";

async function measure(bench: Bench): Promise<Measured> {
  const { env, transfers } = bench;
  return withClient(env.DATABASE_URL, async (db) => {
    const first = await runBare(bench);
    const syncing = await runIndexer(env);
    const again = await runIndexer(env);
    const [rowBytes, syncBytes] = [await bytesOf(db, INDEXES), await bytesOf(db, SYNC)];
    await dropSchemas(db, INDEXES);
    const cached = await runIndexer(env);
    await dropSchemas(db, `${INDEXES}|${SYNC}`);
    const authorised = await runIndexer({ ...env, INDEX_SCOPE: "authorised" });
    const bare = [first, await runBare(bench)];
    const bytes = { rowBytes: rowBytes / transfers, syncBytes: syncBytes / transfers };
    return { bare, syncing, again, cached, authorised, ...bytes };
  });
}

interface Goal {
  readonly name: string;
  readonly value: number;
  readonly limit: number;
  readonly isFloor: boolean;
}

/** Prints each figure with its goal; returns whether all were met. */
function judge(goals: readonly Goal[]): boolean {
  const isReached = ({ value, limit, isFloor }: Goal) => (isFloor ? value >= limit : value <= limit);
  for (const goal of goals) {
    const digits = goal.limit < 1 ? 2 : goal.limit < 10 ? 1 : 0;
    const wanted = `${goal.isFloor ? "at least" : "at most"} ${goal.limit}`;
    const verdict = isReached(goal) ? "reached" : "missed";
    console.log(`${goal.name.padEnd(52)} ${goal.value.toFixed(digits).padStart(8)}   ${wanted.padEnd(16)} ${verdict}`);
  }
  return goals.every(isReached);
}

const mean = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0) / values.length;

function report(transfers: number, measured: Measured): boolean {
  const { bare, syncing, again, cached, authorised, rowBytes, syncBytes } = measured;
  const peer = mean(bare.map(({ perSecond }) => perSecond));
  const peerCpu = mean(bare.map(({ perCpuSecond }) => perCpuSecond));
  const [before, after] = bare.map(({ perSecond }) => Math.round(perSecond));
  const speeds = { syncing, cached, authorised };
  console.log(
    `bare loader          ${before} transfers/s before, ${after} after; ${Math.round(peerCpu)} a processor's second`,
  );
  for (const [name, { seconds, cpuSeconds, peakMiB }] of Object.entries(speeds))
    console.log(
      `Ponder, ${name.padEnd(12)} ${Math.round(transfers / seconds)} transfers/s (${seconds.toFixed(1)} s with its start); ${Math.round(transfers / cpuSeconds)} a processor's second, ${(transfers / cpuSeconds / peerCpu).toFixed(2)} of the bare loader's; ${Math.round(peakMiB)} MiB`,
    );
  const ratio = ({ seconds }: IndexerRun) => transfers / seconds / peer;
  const peakMiB = Math.max(...Object.values(speeds).map((run) => run.peakMiB));
  return judge([
    { name: "full scope while syncing, over the bare loader", value: ratio(syncing), limit: 0.1, isFloor: true },
    { name: "full scope from Ponder's RPC cache, over the same", value: ratio(cached), limit: 0.3, isFloor: true },
    { name: "authorised scope, over the same", value: ratio(authorised), limit: 0.45, isFloor: true },
    { name: "seconds to be up again on the same index", value: again.seconds, limit: 5, isFloor: false },
    { name: "bytes of rows a transfer", value: rowBytes, limit: 750, isFloor: false },
    { name: "bytes of ponder_sync a transfer", value: syncBytes, limit: 2_000, isFloor: false },
    { name: "peak memory of Ponder, MiB", value: peakMiB, limit: 3 * GIB, isFloor: false },
  ]);
}

async function run(wanted: number): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "bench-index-"));
  chmodSync(folder, 0o711);
  const plan = { transfers: wanted, perBlock: PER_BLOCK, endsAt: Math.floor(Date.now() / 1000) };
  const { last: lastBlock } = generateChain(plan);
  const transfers = lastBlock * PER_BLOCK;
  const programs: Program[] = [];
  const postgres = await startPostgres({
    ...{ directory: join(folder, "postgres"), port: await freePort() },
    settings: ["shared_buffers=512MB"],
  });
  try {
    const chain = { TRANSFERS: String(transfers), PER_BLOCK: String(PER_BLOCK), ENDS_AT: String(plan.endsAt) };
    const node = await startProgram("bench/index/rpc-server.ts", { ...chain, PORT: "0" });
    programs.push(node);
    const [, rpcUrl = ""] = node.lines.at(-1)?.split(" ") ?? [];
    const load = () =>
      loadavg()
        .map((one) => one.toFixed(1))
        .join(" ");
    console.log(`${transfers} transfers, ${PER_BLOCK} a block; load of the machine before: ${load()}`);
    const env = { DATABASE_URL: postgres.ownerUrl, BASE_RPC_URL: rpcUrl };
    const isReached = report(transfers, await measure({ env, transfers, lastBlock }));
    console.log(`load of the machine after: ${load()}`);
    return isReached;
  } finally {
    for (const program of programs) await stopProgram(program);
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const transfers = Number(process.argv[2] ?? 1_000_000);
if (!Number.isSafeInteger(transfers) || transfers < PER_BLOCK) {
  console.error(`Usage: npm run bench:index -- [transfers, at least ${PER_BLOCK}]`);
  process.exit(1);
}
process.exitCode = (await run(transfers)) ? 0 : 1;
