import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { withClient } from "../../scripts/embedded/postgres.ts";
import { measure } from "../payments/paying.ts";
import type { World } from "../payments/world.ts";
import { processorMs } from "../processor.ts";
import { median } from "../programs.ts";
import { copies, whenTaken } from "./integration.ts";

/** What sales with the log may come to of sales without it. */
export const LEAST = 0.97;
/** Sales of each payer in a round: a second or two, so that the machine is the same in both rounds of a pair. */
const EACH = 16;
/**
 * Certificates a sale, in both rounds: the sold one, and copies that come in beside. What the log costs is so many times as
 * large, and the machine's own unrest as large as before.
 */
const DOSE = 5;
const FEED_EVERY_MS = 250;
const FEWEST_PAIRS = 12;
/** Then they have not decided. */
const LONGEST_MS = 7 * 60_000;
const SAY_EVERY = 10;
/** Of the normal distribution, for 99 in 100: the interval is looked at several times. */
const CONFIDENCE = 2.576;

interface Round {
  readonly perSecond: number;
  /** Of the service and PostgreSQL, the integration of what came in included. */
  readonly processorMs: number;
  /** Copies a sale. */
  readonly copied: number;
}

type Pair = Readonly<Record<"on" | "off", Round>>;

/** A median, and between which values it lies with the confidence above, whatever the distribution. */
interface Estimate {
  readonly low: number;
  readonly median: number;
  readonly high: number;
}

function estimate(values: readonly number[]): Estimate {
  const sorted = values.toSorted((one, other) => one - other);
  const outside = Math.max(0, Math.floor((sorted.length - CONFIDENCE * Math.sqrt(sorted.length)) / 2));
  const at = (place: number) => sorted[place] ?? Number.NaN;
  return { low: at(outside), median: median(sorted), high: at(sorted.length - 1 - outside) };
}

const said = ({ low, median: middle, high }: Estimate): string =>
  `${middle.toFixed(3)} (99 in 100: ${low.toFixed(3)} to ${high.toFixed(3)})`;

/** Sales with one entry each over sales without, from a pair with more: each entry adds as much to the time of a sale. */
function withOne({ on, off }: Pair): number {
  const added = off.perSecond / on.perSecond - 1;
  return 1 / (1 + added / (1 + on.copied));
}

/**
 * Sales with the log over sales without it, in pairs of short rounds one after the other, until the pairs decide whether the
 * goal is reached. The triggers are off in one round of each pair, so nothing is queued and nothing integrated.
 */
export const loss = (world: World): Promise<number> =>
  withClient(world.database.ownerUrl, async (owner) => {
    const pairs: Pair[] = [];
    const until = performance.now() + LONGEST_MS;
    let expected = 100;
    for (;;) {
      const pair = await measurePair({ world, owner, expected, isTurned: pairs.length % 2 === 1 });
      expected = pair.off.perSecond;
      pairs.push(pair);
      const rate = estimate(pairs.map(withOne));
      const isDecided = rate.low >= LEAST || rate.high < LEAST;
      if (pairs.length % SAY_EVERY === 0) console.log(`  after ${pairs.length} pairs ${said(rate)}`);
      if (pairs.length < FEWEST_PAIRS || (!isDecided && performance.now() < until)) continue;
      say(pairs, world.payers.length * EACH);
      console.log(`  sales with it over sales without it ${said(rate)}${isDecided ? "" : ": NOT DECIDED"}`);
      return isDecided ? rate.median : Number.NaN;
    }
  });

/** @param each sales of one round */
function say(pairs: readonly Pair[], each: number): void {
  console.log(`sales over HTTP, ${pairs.length} pairs of rounds of ${each} sales`);
  for (const name of ["off", "on"] as const) {
    const rate = median(pairs.map((one) => one[name].perSecond)).toFixed(1);
    const copied = (1 + median(pairs.map((one) => one[name].copied))).toFixed(1);
    const log =
      name === "on" ? `with ${copied} entries a sale` : `with ${copied} certificates a sale and without the log`;
    console.log(`  ${log} ${rate} /s`);
  }
  console.log(`  over each other ${said(estimate(pairs.map(({ on, off }) => on.perSecond / off.perSecond)))}`);
  const ofEntry = pairs.map(({ on, off }) => (on.processorMs - off.processorMs) / (each * (1 + on.copied)));
  console.log(`  ${said(estimate(ofEntry))} ms of processor time an entry`);
}

interface PairPlan {
  readonly world: World;
  readonly owner: pg.Client;
  /** Sales a second. */
  readonly expected: number;
  readonly isTurned: boolean;
}

async function measurePair(plan: PairPlan): Promise<Pair> {
  if (plan.isTurned) {
    const on = await measureRound(plan, "on");
    return { on, off: await measureRound(plan, "off") };
  }
  const off = await measureRound(plan, "off");
  return { on: await measureRound(plan, "on"), off };
}

/** How long an integration of half a second's sales takes at most: rounds without it wait as long. */
const AFTER_MS = 1_500;

async function measureRound({ world, owner, expected }: PairPlan, name: "on" | "off"): Promise<Round> {
  const { API, PostgreSQL } = world.processes;
  await whenTaken(owner);
  await owner.query(`ALTER TABLE certificate ${name === "on" ? "ENABLE" : "DISABLE"} TRIGGER queue`);
  const used = () => processorMs(API) + processorMs(PostgreSQL);
  // What half a second leaves in the queue, because the round ends with as much.
  await copies(owner, Math.round((expected * DOSE) / 2));
  const before = used();
  const feed = startFeed(owner, expected * (DOSE - 1));
  const { perSecond } = await measure(world.sides.ours, { payers: world.payers, each: EACH });
  const copied = (await feed.stop()) / (world.payers.length * EACH);
  await sleep(AFTER_MS);
  await whenTaken(owner);
  await owner.query("ALTER TABLE certificate ENABLE TRIGGER queue");
  return { perSecond, processorMs: used() - before, copied };
}

/** Copies so many certificates a second. */
function startFeed(owner: pg.Client, perSecond: number) {
  let isOver = false;
  const feeding = (async () => {
    let fed = 0;
    for (const started = performance.now(); !isOver; await sleep(FEED_EVERY_MS)) {
      const due = Math.round(((performance.now() - started + FEED_EVERY_MS) * perSecond) / 1_000) - fed;
      if (due < 1) continue;
      await copies(owner, due);
      fed += due;
    }
    return fed;
  })();
  return {
    stop(): Promise<number> {
      isOver = true;
      return feeding;
    },
  };
}
