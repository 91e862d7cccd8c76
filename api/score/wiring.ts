import type pg from "pg";
import { createScoreIndex } from "./index-store.ts";
import { createScoreCertificates } from "./score-certificates.ts";
import { createScoreExams } from "./score-exams.ts";
import type { Tiers } from "../arbiter/parties.ts";
import type { Config } from "../platform/config/config.ts";
import { createScores } from "./read-scores.ts";
import { type LookUpWires, wireLookUps } from "./lookup/wiring.ts";

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
