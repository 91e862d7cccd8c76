import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { measure } from "../payments/paying.ts";
import type { World } from "../payments/world.ts";
import { processorMs } from "../programs.ts";
import { type Figure, median } from "../table.ts";
import { copies, whenTaken } from "./entries.ts";

/** Sales of each payer in a round. A round takes a second or two, so that the machine is in the same state in both rounds of a pair. */
const EACH = 16;
/**
 * Certificates per sale in both rounds: the sold one, and copies that arrive meanwhile. With only one, the noise of the machine
 * is larger than the cost of the log.
 */
const DOSE = 5;
const FEED_EVERY_MS = 250;
/** Long enough to integrate half a second's sales. Rounds without the log wait as long. */
const AFTER_MS = 1_500;
const PAIRS = 24;

interface Round {
  readonly perSecond: number;
  /** Processor time of the service and PostgreSQL, including the integration. */
  readonly ms: number;
  /** Copies per sale. */
  readonly copied: number;
}

type Pair = Readonly<Record<"on" | "off", Round>>;

/** Compares sales with and without the log, in pairs of short rounds. Without it, the trigger that queues entries is off. */
export async function sell(world: World, owner: pg.Client): Promise<readonly Figure[]> {
  const pairs: Pair[] = [];
  let expected = 100;
  while (pairs.length < PAIRS) {
    const isTurned = pairs.length % 2 === 1;
    const first = await measureRound(world, owner, { expected, isOn: isTurned });
    const second = await measureRound(world, owner, { expected, isOn: !isTurned });
    const pair = isTurned ? { on: first, off: second } : { on: second, off: first };
    expected = pair.off.perSecond;
    pairs.push(pair);
  }
  const sales = world.payers.length * EACH;
  return [
    {
      ...{ name: "sales/s with one entry each, and without", ours: median(pairs.map(({ on }) => on.perSecond)) },
      ...{ peer: median(pairs.map(({ off }) => off.perSecond)), ratio: median(pairs.map(withOne)), atLeast: 0.97 },
    },
    {
      name: "processor ms per entry",
      ours: median(pairs.map(({ on, off }) => (on.ms - off.ms) / (sales * (1 + on.copied)))),
    },
  ];
}

/** Estimates the ratio of sales with one entry to sales without, from a pair with more entries, which add time linearly. */
function withOne({ on, off }: Pair): number {
  const added = off.perSecond / on.perSecond - 1;
  return 1 / (1 + added / (1 + on.copied));
}

interface RoundPlan {
  /** Sales per second. */
  readonly expected: number;
  readonly isOn: boolean;
}

async function measureRound(world: World, owner: pg.Client, { expected, isOn }: RoundPlan): Promise<Round> {
  const used = () => world.processes.ours.reduce((sum, pid) => sum + processorMs(pid), 0);
  await whenTaken(owner);
  await owner.query(`ALTER TABLE certificate ${isOn ? "ENABLE" : "DISABLE"} TRIGGER queue`);
  // Start with half a second's entries in the queue, because the round ends with as many.
  await copies(owner, Math.round((expected * DOSE) / 2));
  const before = used();
  const feed = startFeed(owner, expected * (DOSE - 1));
  const { perSecond } = await measure(world.sides.ours, { payers: world.payers, each: EACH });
  const copied = (await feed.stop()) / (world.payers.length * EACH);
  await sleep(AFTER_MS);
  await whenTaken(owner);
  await owner.query("ALTER TABLE certificate ENABLE TRIGGER queue");
  return { perSecond, ms: used() - before, copied };
}

/** Copies `perSecond` certificates per second. */
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
