import type pg from "pg";
import type { Address } from "../../api/platform/wallet.ts";
import { openLookUps } from "../../api/score/index.ts";
import { createScoreIndex } from "../../api/score/index-store.ts";
import { type LookUps, withLookup } from "../../api/score/lookup/look-up.ts";
import type { ChainReading } from "../../packages/verifier/src/score/facts.ts";
import { SERVICE } from "./history.ts";

export interface LookUpPlan {
  readonly pool: pg.Pool;
  readonly rpcUrls: readonly string[];
  readonly now: () => Date;
  readonly perClient?: number;
  readonly perHour?: number;
}

/** The look-ups of a service with this database. What fails is thrown into `failures`. */
export function lookUpsOf({ pool, rpcUrls, now, perClient = 10_000, perHour = 10_000 }: LookUpPlan) {
  const failures: object[] = [];
  const lookUps = openLookUps(
    { pool, now, log: { warn: (facts: object) => failures.push(facts) } },
    {
      ...{ indexViewsSchema: "live", payTo: SERVICE, ownAddresses: [] },
      lookUps: { rpcUrls, perSecond: 10_000, perClient, perHour },
    },
    { contracts: [] },
  );
  return { lookUps, failures };
}

/** What the score is told of these wallets, once everything has been looked up. */
export async function readSelective(
  pool: pg.Pool,
  lookUps: LookUps,
  { wallets, now }: { readonly wallets: readonly Address[]; readonly now: Date },
): Promise<readonly ChainReading[]> {
  const notYet = await lookUps.prepare(wallets, "a client");
  if (notYet !== null) throw new Error(notYet.detail);
  const [found, readings] = await Promise.all([
    lookUps.found(wallets),
    createScoreIndex(pool, { viewsSchema: "live" }).read(wallets, now),
  ]);
  if (found?.isComplete !== true || readings === null) throw new Error("nothing was found");
  return readings.map((reading, place) => {
    const wallet = wallets[place] as Address;
    return withLookup(wallet, reading, found.snapshots.get(wallet));
  });
}
