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
/** Sales of each payer in a round: about a second, so that the machine is the same in both rounds of a pair. */
const EACH = 16;
const FEWEST_PAIRS = 20;
const MOST_PAIRS = 160;
/** Of the normal distribution, for 99 in 100: the interval is looked at several times. */
const CONFIDENCE = 2.576;

interface Round {
  readonly perSecond: number;
  /** Of the service and PostgreSQL, the integration of what was sold included, and of what waited before. */
  readonly processorMs: number;
  readonly waiting: number;
}

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

/**
 * Sales with the log over sales without it, in pairs of short rounds one after the other, until the pairs decide whether the
 * goal is reached. The triggers are off in one round of each pair, so nothing is queued and nothing integrated.
 */
export const loss = (world: World): Promise<number> =>
  withClient(world.database.ownerUrl, async (owner) => {
    const pairs: Pair[] = [];
    let expected = 100;
    for (;;) {
      const pair = await measurePair({ world, owner, expected, isTurned: pairs.length % 2 === 1 });
      expected = pair.off.perSecond;
      pairs.push(pair);
      const rate = estimate(pairs.map(({ on, off }) => on.perSecond / off.perSecond));
      const isDecided = rate.low >= LEAST || rate.high < LEAST;
      if (pairs.length < FEWEST_PAIRS || (!isDecided && pairs.length < MOST_PAIRS)) continue;
      say(pairs, world.payers.length * EACH);
      console.log(`  sales with it over sales without it ${said(rate)}${isDecided ? "" : ": NOT DECIDED"}`);
      return isDecided ? rate.median : Number.NaN;
    }
  });

type Pair = Readonly<Record<"on" | "off", Round>>;

/** @param each sales of one round */
function say(pairs: readonly Pair[], each: number): void {
  const spent = pairs.map(({ on, off }) => {
    // What waited before is integrated, too, and was not sold in the round.
    const integration = ((on.processorMs - off.processorMs) * each) / (each + on.waiting);
    return { off: off.processorMs / each, on: (off.processorMs + integration) / each };
  });
  console.log(`sales over HTTP, ${pairs.length} pairs of rounds of ${each} sales`);
  for (const name of ["off", "on"] as const) {
    const rate = median(pairs.map((one) => one[name].perSecond)).toFixed(1);
    const perSale = median(spent.map((one) => one[name])).toFixed(2);
    console.log(`  ${name === "on" ? "with" : "without"} the log ${rate} /s, ${perSale} ms of processor time a sale`);
  }
  console.log(`  processor time with it over that without it ${said(estimate(spent.map(({ on, off }) => on / off)))}`);
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
  // What half a second of sales leaves in the queue, because the round ends with as much.
  const waiting = name === "on" ? Math.round(expected / 2) : 0;
  await copies(owner, waiting);
  const before = used();
  const { perSecond } = await measure(world.sides.ours, { payers: world.payers, each: EACH });
  await sleep(AFTER_MS);
  await whenTaken(owner);
  const round = { perSecond, processorMs: used() - before, waiting };
  await owner.query("ALTER TABLE certificate ENABLE TRIGGER queue");
  return round;
}
