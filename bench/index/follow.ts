import { startProgram, stopProgram } from "../programs.ts";
import type { Figure } from "../table.ts";
import { bytesOf, inIndexWorld, type World } from "./world.ts";

/** USDC on Base at 10 million transfers per day is 116 per second, with a block every two seconds. */
const [PER_BLOCK, SECONDS_PER_BLOCK] = [230, 2];
/** One million payments per day. */
const PAYMENTS_PER_BLOCK = 23;
const MANY = 120;
/** Fewer blocks than Ponder's finality depth, so that it stays live. */
const BATCH = 20;

/**
 * Compares Ponder with a bare loader of the same transfers, and then measures it while it follows the chain, restarts, and
 * catches up after a stop.
 * @param transfers the number of transfers before it follows the chain
 * @param minutes the duration of the stop
 */
export function follow(transfers: number, minutes: number): Promise<readonly Figure[]> {
  const first = Math.ceil(transfers / PER_BLOCK);
  const missed = (minutes * 60) / SECONDS_PER_BLOCK;
  const chain = { transfers: (first + MANY + missed + 1) * PER_BLOCK, perBlock: PER_BLOCK };
  const plan = { ...chain, secondsPerBlock: SECONDS_PER_BLOCK, endsAt: Math.floor(Date.now() / 1_000) };
  return inIndexWorld({ ...plan, scope: "full", head: first }, async (world) => {
    const { start, stop, grow, caughtUp } = world;
    const peer = await bareLoader(world, first);
    const seconds = async (work: () => Promise<void>) => {
      const started = performance.now();
      await work();
      await caughtUp();
      return (performance.now() - started) / 1_000;
    };
    const synced = await seconds(start);
    const [rows, copy] = [await bytesOf(world.db, "^live_"), await bytesOf(world.db, "^ponder_sync$")];
    const each = first * PER_BLOCK;
    let live = 0;
    for (let block = 0; block < MANY; block += BATCH) live += await seconds(() => grow(BATCH));
    const [, again] = await restart(world);
    await stop();
    await grow(missed);
    const late = await seconds(start);
    const demand = PER_BLOCK / SECONDS_PER_BLOCK;
    return [
      { name: "first sync, transfers/s", ours: each / synced, peer, atLeast: 0.1 },
      { name: "rows, bytes per transfer", ours: rows / each, atMost: 750 },
      { name: "`ponder_sync`, bytes per transfer", ours: copy / each, atMost: 2_000 },
      { name: "live, transfers/s, and Base's rate", ours: (MANY * PER_BLOCK) / live, peer: demand, atLeast: 3 },
      { name: "at the head again after a restart, s", ours: again, atMost: 30 },
      { name: `caught up after a stop of ${minutes} minutes, s`, ours: late, atMost: minutes * 10 },
    ];
  });
}

/** A restart in production's default scope, with one million payments per day. */
export function restartSelective(): Promise<readonly Figure[]> {
  const plan = { transfers: 1_000 * PAYMENTS_PER_BLOCK, perBlock: PAYMENTS_PER_BLOCK, authorizedEvery: 1 };
  const timing = { secondsPerBlock: SECONDS_PER_BLOCK, endsAt: Math.floor(Date.now() / 1_000) };
  return inIndexWorld({ ...plan, ...timing, scope: "selective", head: 900 }, async (world) => {
    await world.start();
    await world.caughtUp();
    const [ready, atHead] = await restart(world);
    return [
      { name: "ready again after a restart, `selective`, s", ours: ready, atMost: 5 },
      { name: "at the head again after a restart, `selective`, s", ours: atHead, atMost: 10 },
    ];
  });
}

/** Seconds from a start on the same index until readers have it, and until it is at the head. */
async function restart({ start, stop, grow, ready, caughtUp }: World): Promise<readonly [number, number]> {
  await stop();
  await grow(1);
  const started = performance.now();
  const elapsed = () => (performance.now() - started) / 1_000;
  await start();
  await ready();
  const readyAfter = elapsed();
  await caughtUp();
  return [readyAfter, elapsed()];
}

async function bareLoader({ env, db, postgres }: World, lastBlock: number): Promise<number> {
  const program = await startProgram("bench/index/peer.ts", {
    ...{ ...env, DATABASE_URL: postgres.ownerUrl, LAST_BLOCK: String(lastBlock) },
  });
  const [, perSecond] = program.lines.at(-1)?.split(" ") ?? [];
  await stopProgram(program);
  await db.query("drop table bare");
  return Number(perSecond);
}
