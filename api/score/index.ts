import { randomUUID } from "node:crypto";
import type { Tiers } from "../arbiter/index.ts";
import type { EscrowContract } from "../payments/index.ts";
import { openProvider } from "../platform/chain/provider.ts";
import { every, sleep } from "../platform/clock.ts";
import type { Config } from "../platform/config/config.ts";
import { createLookupBudget } from "../platform/db/lookup-budget.ts";
import { type Platform, under } from "../platform/slice.ts";
import type { Address } from "../platform/wallet.ts";
import { createScoreIndex } from "./index-store.ts";
import { createInflowReader } from "./lookup/chain.ts";
import { createPayeesIndex } from "./lookup/index-store.ts";
import { createLookUps, type LookUps } from "./lookup/look-up.ts";
import { createLookupStore, createMarkStore } from "./lookup/store.ts";
import { createScores } from "./read-scores.ts";
import { type ScoreRouteParts, scoreRoutes } from "./routes.ts";
import { createScoreCertificates, createScoreExams } from "./store.ts";

export { MAX_WALLETS, SCORE_PRICES } from "./request.ts";

type ScorePlatform = Pick<Platform, "pool" | "now"> & { readonly log: { warn(facts: object, message: string): void } };
type LookUpConfig = Pick<Config, "indexViewsSchema" | "lookUps" | "ownAddresses" | "payTo">;

interface LookUpNeeds {
  readonly contracts: readonly Pick<EscrowContract, "address" | "store">[];
}

/**
 * Senders whose transfers do not count: an escrow pays out its buyers' money, not its own. The index leaves out the
 * same ones.
 */
export const ignoredOf = (
  { payTo, ownAddresses }: Pick<LookUpConfig, "payTo" | "ownAddresses">,
  contracts: LookUpNeeds["contracts"],
): readonly Address[] => [
  ...new Set([payTo, ...ownAddresses, ...contracts.flatMap(({ address, store }) => [address, store])]),
];

export function openLookUps(
  { pool, now, log }: ScorePlatform,
  config: LookUpConfig,
  { contracts }: LookUpNeeds,
): LookUps {
  const { rpcUrls, perSecond, perClient, perHour } = config.lookUps;
  const provider = openProvider(rpcUrls, perSecond);
  return createLookUps({
    index: createPayeesIndex(pool, { viewsSchema: config.indexViewsSchema, log }),
    store: createLookupStore(pool),
    reader: createInflowReader({ provider, marks: createMarkStore(pool) }),
    budget: createLookupBudget(pool, { client: perClient, all: perHour }),
    ignored: ignoredOf(config, contracts),
    now,
    newToken: randomUUID,
    ...{ sleep, every },
    failed: (error) => log.warn({ err: error }, "a look-up on the chain failed"),
  });
}

export function createScore(
  platform: Platform,
  config: Config,
  needs: LookUpNeeds & Pick<ScoreRouteParts, "payeeUrl">,
) {
  const { scores, tiers } = openScores(platform, config, needs);
  return { tiers, routes: under("Risk score", scoreRoutes({ scores, payeeUrl: needs.payeeUrl })) };
}

/** Creates the scores and, from them, the tiers that a verdict shows of its parties. */
export function openScores(
  platform: ScorePlatform,
  config: LookUpConfig & Pick<Config, "baseUrl">,
  needs: LookUpNeeds,
) {
  const { pool, now, log } = platform;
  const index = createScoreIndex(pool, { viewsSchema: config.indexViewsSchema, log });
  const lookUps = openLookUps(platform, config, needs);
  const certificates = createScoreCertificates(pool);
  const exams = createScoreExams(pool);
  const scores = createScores({ index, lookUps, certificates, exams, baseUrl: config.baseUrl, now });
  const tiers: Tiers = {
    prepare: ({ payer, payee }, client) => scores.prepare([payer, payee], client),
    ready: ({ payer, payee }) => scores.ready([payer, payee]),
    async of({ payer, payee }) {
      const records = await scores.of([payer, payee]);
      if (records === null) throw new Error("the parties' scores are temporarily unavailable");
      const [one, other] = records.map(({ wallet, score, tier }) => ({ wallet, score, tier }));
      if (!one || !other) throw new Error("a party has no score record");
      return { payer: one, payee: other };
    },
  };
  return { scores, tiers };
}
