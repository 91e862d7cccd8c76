import { execFile } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { HISTORY_TABLES } from "../../../indexer/history/tables.ts";
import { waitUntil } from "../../../scripts/embedded/wait-until.ts";
import { judge } from "../goals.ts";
import { INDEXER_SETTINGS } from "../indexer.ts";
import { type LiveStage, withLiveStage } from "../live-stage.ts";
import { writeCsv } from "../transfers-csv.ts";

// The size of Ponder's copy of the chain, and what is left of the rows when it is pruned all the time: while blocks come,
// are reorganized, and Ponder is killed. The peer of the rows is the loader of a preloaded history, which is other code.

/** 0.5 million authorized payments a day, a block every two seconds. */
const PER_BLOCK = 12;
/** Of the first sync, and of what follows it. */
const [SYNCED, FOLLOWING] = [4_000, 1_500];
const BYTES_A_PAYMENT = 1_900;
const MIB = 2 ** 20;
const SCOPE = { INDEX_SCOPE: "selective" };
const OFTEN = { ...SCOPE, PRUNE_SECONDS: "1" };

/** What section 2 of a hard day looks like: each step goes on from the one before. */
async function disturb(stage: LiveStage): Promise<void> {
  const { grow, reorganize, caughtUp } = stage;
  const growLive = async (blocks: number) => {
    for (let block = 0; block < blocks; block += 1) {
      await grow(1);
      await sleep(20);
    }
  };
  const killPonder = () => process.kill(stage.ponderPid(), "SIGKILL");
  await growLive(50);
  await reorganize(6);
  await growLive(50);
  await caughtUp();
  killPonder();
  await growLive(20);
  await waitUntil(() => stage.said("index ready").length === 2, 60_000);
  await caughtUp();
  await stage.stop();
  await reorganize(20);
  await grow(400);
  await stage.start(OFTEN, /"ponder started"/);
  await waitUntil(async () => (await finalIn(stage)) > SYNCED + 150, 60_000, 5);
  killPonder();
  await caughtUp();
  await growLive(20);
  await reorganize(10);
  await growLive(10);
  await caughtUp();
}

/** The last block that is final in the index. */
async function finalIn({ db, said }: LiveStage): Promise<number> {
  const schema = String(said("ponder started")[0]?.schema);
  const { rows } = await db.query(
    `select substr(finalized_checkpoint, 27, 16)::int as block from ${schema}._ponder_checkpoint`,
  );
  return Number(rows[0]?.block);
}

interface Copy {
  readonly bytes: number;
  readonly payments: number;
}

/** Ponder's copy of the chain: its size on disk, and how many payments it has. */
async function copyOf({ db }: LiveStage): Promise<Copy> {
  const { rows } = await db.query(`select sum(pg_total_relation_size(c.oid))::float8 as bytes,
      (select count(*)::int from ponder_sync.logs) as payments
    from pg_class c join pg_namespace n on n.oid = relnamespace where nspname = 'ponder_sync' and relkind = 'r'`);
  return rows[0];
}

/** How many rows one schema has and the other has not. */
async function difference({ db }: LiveStage, [one, other]: readonly [string, string]): Promise<number> {
  let rows = 0;
  for (const [table, columns] of Object.entries(HISTORY_TABLES)) {
    const rowsOf = (schema: string) => `select ${columns.join()} from ${schema}.${table}`;
    const only = (a: string, b: string) => `(${rowsOf(a)} except all ${rowsOf(b)})`;
    const { rows: found } = await db.query(
      `select count(*)::int as n from (${only(one, other)} union all ${only(other, one)}) different`,
    );
    rows += found[0]?.n;
  }
  return rows;
}

/** Loads the chain, as it is in the end, the other way. */
async function recount({ chain, folder, env }: LiveStage): Promise<void> {
  const file = join(folder, "transfers.csv");
  await writeCsv(chain, file);
  const settings = { ...INDEXER_SETTINGS, ...env, ...SCOPE, INDEX_HISTORY: "recount" };
  await promisify(execFile)(process.execPath, ["scripts/index-preload.ts", file], {
    env: { ...process.env, ...settings },
  });
}

/** Returns whether all goals were met. */
export const runPrune = (): Promise<boolean> => {
  const plan = { transfers: (SYNCED + FOLLOWING) * PER_BLOCK, perBlock: PER_BLOCK, allAuthorised: true };
  const endsAt = Math.floor(Date.now() / 1000);
  return withLiveStage({ plan: { ...plan, endsAt, secondsPerBlock: 2 }, head: SYNCED }, async (stage) => {
    await stage.start({ ...SCOPE, PRUNE_SECONDS: "0" });
    await stage.caughtUp();
    const whole = await copyOf(stage);
    await stage.stop();
    await stage.start(OFTEN);
    await disturb(stage);
    // All payments, and as many empty blocks as make them final.
    await stage.grow(SYNCED + FOLLOWING + 40 - stage.chain.head);
    await stage.caughtUp();
    await settled(stage);
    const kept = await copyOf(stage);
    await stage.stop();
    await recount(stage);
    const lost = await difference(stage, ["live", "recount"]);
    await stage.start({ ...SCOPE, PRUNE_SECONDS: "0", INDEX_VIEWS_SCHEMA: "again" });
    await stage.stop();
    const trapped = await difference(stage, ["again", "recount"]);
    tell(stage, { whole, kept });
    const allowed = 2 * BYTES_A_PAYMENT * kept.payments + 16 * MIB;
    return judge([
      { name: "ponder_sync, MB", value: kept.bytes / 1e6, limit: Math.floor(allowed / 1e6), isFloor: false },
      { name: "rows that differ from a recount", value: lost, limit: 0, isFloor: false },
      { name: "rows that differ in a new index", value: trapped, limit: 0, isFloor: false },
    ]);
  });
};

/** Until the pruner has reached what it may. */
async function settled({ db, chain }: LiveStage): Promise<void> {
  const below = async () =>
    Number((await db.query("select below from indexer.pruned")).rows[0]?.below) >= chain.head - 1_100;
  if (!(await waitUntil(below, 60_000))) throw new Error("the pruner did not follow the chain");
  await sleep(3_000);
}

function tell({ chain }: LiveStage, { whole, kept }: { readonly whole: Copy; readonly kept: Copy }): void {
  const megabytes = ({ bytes }: Copy) => (bytes / 1e6).toFixed(1);
  const each = ({ bytes, payments }: Copy) => Math.round(bytes / payments);
  console.log(`unpruned ${megabytes(whole)} MB, ${each(whole)} bytes for each of ${whole.payments} payments`);
  console.log(
    `pruned   ${megabytes(kept)} MB, ${each(kept)} bytes for each of ${kept.payments} payments, of ${chain.last * chain.perBlock}`,
  );
}
