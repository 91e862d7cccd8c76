import { elapsedMs } from "../platform/clock.ts";
import type { Config } from "../platform/config/config.ts";
import { BudgetSpent, createLookupBudget } from "../platform/db/lookup-budget.ts";
import { eachNetwork, NETWORKS } from "../platform/networks.ts";
import { type Platform, type Slice, under } from "../platform/slice.ts";
import { createAuthorizationReader } from "./chain.ts";
import { createLookUp } from "./look-up.ts";
import type { FinalFacts, HearAsked } from "./reading.ts";
import { type SettlementRouteParts, settlementRoutes } from "./routes.ts";
import { createStatements } from "./sell-statement.ts";
import { createAuthorizationFacts, createKnownTransactions } from "./store.ts";

export type { HearAsked } from "./reading.ts";

interface SettlementNeeds {
  /** Hear of every question, in this order. */
  readonly heard: readonly HearAsked[];
}

/** Whether a USDC authorization has settled, of any payer. */
export const createSettlementStatus = (
  platform: Platform,
  config: Pick<Config, "lookUps">,
  needs: SettlementNeeds,
): Slice => ({ routes: under("Settlement", settlementRoutes(settlementParts(platform, config, needs))), jobs: [] });

/** The free look-ups and the sold statements, each with its own queue and searches. */
export function settlementParts(
  {
    pool,
    chains,
    log,
    now,
    peers: clients,
    keys: { signer },
  }: Pick<Platform, "pool" | "chains" | "log" | "now" | "peers"> & {
    readonly keys: Pick<Platform["keys"], "signer">;
  },
  { lookUps: { perClient, perHour } }: Pick<Config, "lookUps">,
  { heard }: SettlementNeeds,
): SettlementRouteParts {
  const maySearch = (purpose: string) => {
    const budget = createLookupBudget(pool, { client: perClient, all: perHour }, purpose);
    return (client: string) =>
      budget.spend(client).then(
        () => true,
        (error: unknown) => {
          if (error instanceof BudgetSpent) return false;
          throw error;
        },
      );
  };
  const failed = (error: unknown, what: string) => log.warn({ err: error }, what);
  const facts = eachNetwork((network) => whereKept(createAuthorizationFacts(pool, network), failed));
  const known = createKnownTransactions(pool);
  const looking = () => {
    const readers = eachNetwork((network) => createAuthorizationReader(chains[network], NETWORKS[network]));
    return { readers, lookUp: createLookUp({ readers, known, facts, now, elapsedMs }) };
  };
  return {
    settlements: { lookUp: looking().lookUp, maySearch: maySearch("settlement "), clients, heard, now, failed },
    // With a queue and searches of their own: a flood of what is free keeps nobody from buying.
    statements: createStatements({ ...looking(), maySearch: maySearch("statement "), signer, now }),
  };
}

/** Without the database, the chain says the same. */
const whereKept = (facts: FinalFacts, failed: (error: unknown, what: string) => void): FinalFacts => {
  const missed =
    <Value>(instead: Value) =>
    (error: unknown): Value => {
      failed(error, "what is final of an authorization was neither read nor kept");
      return instead;
    };
  return {
    get: (name, validBefore) => facts.get(name, validBefore).catch(missed({ end: null, unusedBefore: null })),
    putEnd: (name, end) => facts.putEnd(name, end).catch(missed(undefined)),
    putUnused: (name, validBefore, block) => facts.putUnused(name, validBefore, block).catch(missed(block)),
  };
};
