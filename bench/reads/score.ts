import { createVerificationReader } from "../../api/certificates/store.ts";
import { connect } from "../../api/platform/db/connection.ts";
import { createActivityIndex } from "../../api/platform/index/activity.ts";
import type { Address } from "../../api/platform/wallet.ts";
import { createScoreIndex } from "../../api/score/index-store.ts";
import { createScores } from "../../api/score/read-scores.ts";
import { createScoreCertificates, createScoreExams } from "../../api/score/store.ts";
import { walletAt, walletCount } from "../../test/support/indexer/generated-chain.ts";
import { fileOf } from "../index/preload.ts";
import { historyOf, inIndexWorld, type World } from "../index/world.ts";
import { runProgram } from "../programs.ts";
import { type Figure, percentile } from "../table.ts";

const ROUNDS = 10;
const CALLS = 100;
const BATCH = 25;
/** Everyone pays the wallets before this one. */
const FIRST_SMALL = 200;

/** The index has scope `full`, so there are no look-ups. */
const NO_LOOK_UPS = {
  prepare: async () => null,
  found: async () => ({ isComplete: true, snapshots: new Map() }),
};
const VIEWS = { viewsSchema: "live", maxLagMs: Number.POSITIVE_INFINITY };

/** The reads of `GET /verify` and `POST /score`, for small wallets and for one that has a quarter of all transfers. */
const READS = {
  "`/verify`, largest wallet": ({ verify }) => verify(walletAt(0)),
  "score, small wallet": ({ score, small }, n) => score([small(n)]),
  "score, largest wallet": ({ score }) => score([walletAt(0)]),
  [`score, ${BATCH} small wallets`]: ({ score, small }, n) =>
    score(Array.from({ length: BATCH }, (_, k) => small(n * BATCH + k))),
} satisfies Readonly<Record<string, (index: Loaded, n: number) => Promise<unknown>>>;

/** Compares the reads on a large index with the same reads on a small one, in turns. */
export const measureScore = (few: number, many: number): Promise<readonly Figure[]> =>
  withLoaded(few, (small) => withLoaded(many, (large) => compare(small, large)));

async function compare(small: Loaded, large: Loaded): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const [name, read] of Object.entries(READS)) {
    const times = { small: [] as number[], large: [] as number[] };
    for (let round = -1; round < ROUNDS; round += 1)
      for (const [size, index] of [
        ["small", small],
        ["large", large],
      ] as const) {
        const some = await timesOf((n) => read(index, n), (round + 1) * CALLS);
        // The first round prepares statements and warms the cache.
        if (round >= 0) times[size].push(...some);
      }
    const [ours, peer] = [percentile(times.large, 0.5), percentile(times.small, 0.5)];
    figures.push({ name: `${name}, p50 ms`, ours, peer, atMost: 1.5 });
  }
  return figures;
}

async function timesOf(read: (n: number) => Promise<unknown>, from: number): Promise<readonly number[]> {
  const times: number[] = [];
  for (let n = from; n < from + CALLS; n += 1) {
    const started = performance.now();
    const answer = await read(n);
    times.push(performance.now() - started);
    if (answer === null) throw new Error("the index did not respond");
  }
  return times;
}

/** An index, read at its head. */
interface Loaded {
  readonly verify: (wallet: Address) => Promise<unknown>;
  readonly score: (wallets: readonly Address[]) => Promise<unknown>;
  /** Returns a wallet with few transfers, a different one for each number. */
  readonly small: (n: number) => Address;
}

const withLoaded = <T>(transfers: number, work: (loaded: Loaded) => Promise<T>): Promise<T> =>
  inIndexWorld(historyOf(transfers), async (world) => {
    await runProgram("scripts/index-preload.ts", world.env, [await fileOf(world)]);
    await world.start();
    await world.caughtUp();
    await world.stop();
    await world.db.query("vacuum analyze");
    const pool = connect(world.postgres.apiUrl, 1);
    try {
      return await work({ ...readsOn(pool, world), small: smallOf(transfers) });
    } finally {
      await pool.end();
    }
  });

function readsOn(pool: ReturnType<typeof connect>, { chain }: World): Pick<Loaded, "verify" | "score"> {
  const now = new Date(chain.timeOf(chain.head) * 1_000);
  const scores = createScores({
    ...{ index: createScoreIndex(pool, VIEWS), lookUps: NO_LOOK_UPS, certificates: createScoreCertificates(pool) },
    ...{ exams: createScoreExams(pool), baseUrl: "http://localhost", now: () => now },
  });
  return {
    // Each reader is new, so nothing is cached.
    verify: async (wallet) =>
      (await createVerificationReader(pool, createActivityIndex(pool, VIEWS)).facts(wallet, now)).activity,
    score: (wallets) => scores.of(wallets),
  };
}

const smallOf = (transfers: number) => (n: number) =>
  walletAt(FIRST_SMALL + ((n * 13) % (walletCount(transfers) - FIRST_SMALL)));
