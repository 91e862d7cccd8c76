import { setTimeout as sleep } from "node:timers/promises";
import { processorMs } from "../../processor.ts";
import { median } from "../../programs.ts";
import { judge } from "../goals.ts";
import { type LiveStage, withLiveStage } from "../live-stage.ts";

// All transfers of USDC on Base at 10 million a day: what a block costs when it comes, how many there may be, and how long
// the index takes to be there again after a stop.

/** 116 transfers a second, and a block every two seconds. */
const [PER_BLOCK, SECONDS_PER_BLOCK] = [230, 2];
/** Before anything is measured, so that there are rows to change. */
const SYNCED = 200;
/** Of blocks that come one by one, and of those that come as fast as they are taken. */
const [SINGLE, MANY] = [40, 120];
/** Below what Ponder holds to be final, so that it stays live. */
const AT_ONCE = 20;

const startStage = <T>(blocks: number, work: (stage: LiveStage) => Promise<T>): Promise<T> => {
  const plan = { transfers: (SYNCED + blocks) * PER_BLOCK, perBlock: PER_BLOCK, secondsPerBlock: SECONDS_PER_BLOCK };
  const endsAt = Math.floor(Date.now() / 1000);
  return withLiveStage({ plan: { ...plan, endsAt }, head: SYNCED }, async (stage) => {
    await stage.start();
    await stage.caughtUp();
    return work(stage);
  });
};

interface Singles {
  /** Of Ponder and of PostgreSQL, milliseconds of a processor a block. */
  readonly ponderMs: number;
  readonly postgresMs: number;
  /** From the block to its rows, milliseconds. */
  readonly lagMs: number;
}

async function measureSingles(stage: LiveStage): Promise<Singles> {
  const used = () => [processorMs(stage.ponderPid()), processorMs(stage.postgresPid)] as const;
  const [ponder, postgres] = used();
  const lags: number[] = [];
  for (let block = 0; block < SINGLE; block += 1) {
    const mined = performance.now();
    await stage.grow(1);
    await stage.caughtUp();
    lags.push(performance.now() - mined);
    await sleep(Math.max(0, SECONDS_PER_BLOCK * 1_000 - (performance.now() - mined)));
  }
  const [ponderAfter, postgresAfter] = used();
  const each = (ms: number) => ms / SINGLE;
  return { ponderMs: each(ponderAfter - ponder), postgresMs: each(postgresAfter - postgres), lagMs: median(lags) };
}

/** Transfers a second, of blocks that wait for nothing. */
async function measureMany(stage: LiveStage): Promise<number> {
  const started = performance.now();
  for (let block = 0; block < MANY; block += AT_ONCE) {
    await stage.grow(AT_ONCE);
    await stage.caughtUp();
  }
  return (MANY * PER_BLOCK * 1_000) / (performance.now() - started);
}

/** Returns whether all goals were met. */
export const runLive = (): Promise<boolean> =>
  startStage(SINGLE + MANY, async (stage) => {
    const { ponderMs, postgresMs, lagMs } = await measureSingles(stage);
    const perSecond = await measureMany(stage);
    const demand = PER_BLOCK / SECONDS_PER_BLOCK;
    console.log(`PostgreSQL used ${postgresMs.toFixed(0)} ms of a processor a block`);
    return judge([
      { name: `Ponder's ms of a processor a block of ${PER_BLOCK}`, value: ponderMs, limit: 400, isFloor: false },
      { name: "transfers a second, over those of Base", value: perSecond / demand, limit: 3, isFloor: true },
      { name: "median ms from a block to its rows", value: lagMs, limit: 3_000, isFloor: false },
    ]);
  });

/** @param minutes how long the index stands still. Returns whether it was there again in a sixth of that. */
export const runCatchup = (minutes: number): Promise<boolean> => {
  const missed = (minutes * 60) / SECONDS_PER_BLOCK;
  return startStage(missed, async (stage) => {
    await stage.stop();
    await stage.grow(missed);
    const started = performance.now();
    await stage.start();
    await stage.caughtUp();
    const seconds = (performance.now() - started) / 1_000;
    console.log(`${missed} blocks, ${Math.round((missed * PER_BLOCK) / seconds)} transfers a second`);
    return judge([
      { name: `seconds to catch up ${minutes} minutes`, value: seconds, limit: minutes * 10, isFloor: false },
    ]);
  });
};
