import type pg from "pg";
import { NO_TRANSACTIONS } from "../../arbiter/evidence.ts";
import type { EvidenceParts } from "../../arbiter/gather-evidence.ts";
import { createGithubChecks } from "../../arbiter/github.ts";
import { POLICY_VERSIONS } from "../../arbiter/policy/index.ts";
import { sleepUnlessAborted } from "../../platform/clock.ts";
import type { Config } from "../../platform/config/config.ts";
import { guard } from "../../platform/web/guard-settings.ts";
import { createGuardedFetch } from "../../platform/web/guarded-fetch/fetch.ts";
import { AT_ONCE, type ContestParts } from "./answer-contests.ts";
import { createContestStore } from "./store.ts";

/** Contests are free: however many there are, they fetch this much at once and wait this long for their turn. */
const FETCHES = { maxFetches: AT_ONCE, queueMs: 2_000 };

/** What contests are stored in and judged by. */
export function wireContests({
  config,
  pool,
  now,
  wait = sleepUnlessAborted,
}: {
  readonly config: Config;
  readonly pool: pg.Pool;
  readonly now: () => Date;
  /** Between two looks of the arbiter; defaults to the machine's clock. */
  readonly wait?: EvidenceParts["wait"] | undefined;
}): Pick<ContestParts, "contests" | "evidence" | "claims"> {
  const userAgent = `agent-payment-trust-arbiter/1 (+${config.baseUrl}/escrow)`;
  const fetcher = createGuardedFetch({ ...guard(config), userAgent, ...FETCHES });
  const checkRuns = createGithubChecks({ ...config.github, userAgent });
  const policies = POLICY_VERSIONS;
  return {
    contests: createContestStore(pool),
    evidence: { fetcher, checkRuns, transactions: NO_TRANSACTIONS, policies, now, wait },
    claims: { ...guard(config), policies, now },
  };
}
