// The cost and speed of the index, with the chain, PostgreSQL, and the indexer in separate processes.
//
//   npm run bench:index -- [transfers, default 500000] [minutes of the stop, default 20]
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { prune } from "../../indexer/prune.ts";
import { type Figure, report } from "../table.ts";
import { follow, restartSelective } from "./follow.ts";
import { preload } from "./preload.ts";
import { bytesOf, inIndexWorld } from "./world.ts";

const PER_BLOCK = 23;
/** The blocks between two prunings, which take ten minutes on Base. */
const BLOCKS = 300;
/** More blocks than pruning keeps below the final block. */
const FIRST_BLOCKS = 1_500;
const ROUNDS = 12;
/** A sixtieth of the time between two prunings. PostgreSQL's naptime is also a sixtieth, a second instead of a minute. */
const ROUND_MS = 10_000;

/**
 * Measures the size of Ponder's copy of the chain while blocks arrive and it is pruned after every ten minutes of blocks, sixty
 * times faster than on Base. Ponder fills it first. Then copies of the newest rows are added, and only PostgreSQL's own
 * autovacuum frees deleted rows.
 */
const bounded = (): Promise<readonly Figure[]> => {
  const plan = { transfers: FIRST_BLOCKS * PER_BLOCK, perBlock: PER_BLOCK, endsAt: Math.floor(Date.now() / 1_000) };
  return inIndexWorld({ ...plan, scope: "full" }, async ({ db, start, stop, caughtUp }) => {
    await db.query("alter system set autovacuum_naptime = '1s'");
    await db.query("select pg_reload_conf()");
    await start();
    await caughtUp();
    await stop();
    const sizes = [await bytesOf(db, "^ponder_sync$")];
    for (let round = 1; round <= ROUNDS; round += 1) {
      await addBlocks(db);
      while ((await prune(db)).isMore);
      await sleep(ROUND_MS);
      sizes.push(await bytesOf(db, "^ponder_sync$"));
    }
    const [before, after] = [Math.max(...sizes.slice(0, 1 + ROUNDS / 2)), sizes.at(-1) ?? Number.NaN];
    console.log(`ponder_sync, KiB after each pruning: ${sizes.map((bytes) => Math.round(bytes / 1_024)).join(" ")}`);
    return [{ name: `\`ponder_sync\` after ${ROUNDS} prunings, bytes`, ours: after, peer: before, atMost: 1.1 }];
  });
};

/** Copies the newest blocks as the next blocks. */
async function addBlocks(db: pg.Pool): Promise<void> {
  const { rows } = await db.query<{ head: string }>("select max(number) as head from ponder_sync.blocks");
  for (const [table, column] of [
    ["blocks", "number"],
    ["transactions", "block_number"],
    ["logs", "block_number"],
  ] as const)
    await db.query(
      `insert into ponder_sync.${table} select (jsonb_populate_record(one, jsonb_build_object('${column}', ${column} + ${BLOCKS}))).*
        from ponder_sync.${table} one where ${column} > $1`,
      [Number(rows[0]?.head) - BLOCKS],
    );
  const { rows: indexes } = await db.query<{ schema: string }>(
    "select nspname as schema from pg_namespace where nspname ~ '^live_'",
  );
  for (const { schema } of indexes)
    await db.query(`update ${schema}._ponder_checkpoint set finalized_checkpoint = overlay(finalized_checkpoint
      placing lpad((substr(finalized_checkpoint, 27, 16)::int8 + ${BLOCKS})::text, 16, '0') from 27 for 16)`);
}

const [transfers = 500_000, minutes = 20] = process.argv.slice(2).map(Number);
if (!(Number.isSafeInteger(transfers) && transfers >= 10_000 && minutes >= 1)) {
  console.error("Usage: npm run bench:index -- [transfers, at least 10000] [minutes, at least 1]");
  process.exit(1);
}
const figures = [
  ...(await follow(transfers, minutes)),
  ...(await restartSelective()),
  ...(await preload(transfers)),
  ...(await bounded()),
];
process.exitCode = report(`the index, ${transfers.toLocaleString("en-US")} transfers`, figures) ? 0 : 1;
