import { randomUUID } from "node:crypto";
import type pg from "pg";
import { openProvider } from "../../indexer/fetch/provider.ts";
import type { Tiers } from "../arbiter/parties.ts";
import type { EscrowContract } from "../payments/schemes/escrowed.ts";
import { every, sleep } from "../platform/clock.ts";
import type { Config } from "../platform/config/config.ts";
import { createLookupBudget } from "../platform/db/lookup-budget.ts";
import type { Address } from "../platform/wallet.ts";
import { createScoreIndex } from "./index-store.ts";
import { createInflowReader } from "./lookup/chain.ts";
import { createPayeesIndex } from "./lookup/index-store.ts";
import { createLookUps, type LookUps } from "./lookup/look-up.ts";
import { createLookupStore, createMarkStore } from "./lookup/store.ts";
import { createScores } from "./read-scores.ts";
import { createScoreCertificates, createScoreExams } from "./store.ts";

export interface LookUpWires {
  readonly config: Pick<Config, "indexViewsSchema" | "lookUps" | "ownAddresses" | "payTo">;
  readonly contracts: readonly Pick<EscrowContract, "address" | "store">[];
  readonly pool: pg.Pool;
  readonly now: () => Date;
  readonly log: { readonly warn: (facts: object, message: string) => void };
}

/** From whom no transfer counts: what an escrow pays out comes from its buyers, not from it. The index leaves out the same. */
export const ignoredOf = (
  { payTo, ownAddresses }: Pick<LookUpWires["config"], "payTo" | "ownAddresses">,
  contracts: LookUpWires["contracts"],
): readonly Address[] => [
  ...new Set([payTo, ...ownAddresses, ...contracts.flatMap(({ address, store }) => [address, store])]),
];

/** The look-ups of scope `selective`. */
export function wireLookUps({ config, contracts, pool, now, log }: LookUpWires): LookUps {
  const { rpcUrls, perSecond, perClient, perHour } = config.lookUps;
  const provider = openProvider(rpcUrls, perSecond, { isLasting: true });
  return createLookUps({
    index: createPayeesIndex(pool, { viewsSchema: config.indexViewsSchema }),
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

export interface ScoreWires {
  readonly config: LookUpWires["config"] & Pick<Config, "baseUrl" | "escrowAddresses">;
  readonly contracts: LookUpWires["contracts"];
  readonly pool: pg.Pool;
  readonly now: () => Date;
  readonly log: LookUpWires["log"];
}

/** The risk scores, and the tiers that the arbiter reports. */
export function wireScore({ config, contracts, pool, now, log }: ScoreWires) {
  const index = createScoreIndex(pool, { viewsSchema: config.indexViewsSchema });
  const lookUps = wireLookUps({ config, contracts, pool, now, log });
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
