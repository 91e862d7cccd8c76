import type pg from "pg";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startProgram, stopProgram } from "../../programs.ts";
import { judge } from "../goals.ts";
import { type IndexerRun, runIndexer } from "../indexer.ts";
import { PER_BLOCK, withStage } from "../stage.ts";

// The index's own speed and size: Ponder with the unmodified configuration beside a bare viem getLogs + COPY loader, over
// the same generated chain, PostgreSQL and machine, one after the other. The chain is served by a third process.

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
    "bench/index/sync/peer.ts",
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

/** @param transfers how many the chain has. Returns whether all goals were met. */
export const runSync = (transfers: number): Promise<boolean> =>
  withStage({ transfers }, async ({ env, chain: { last } }) => {
    const counted = last * PER_BLOCK;
    return report(counted, await measure({ env, transfers: counted, lastBlock: last }));
  });
