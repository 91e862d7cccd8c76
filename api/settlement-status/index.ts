import { elapsedMs } from "../platform/clock.ts";
import type { Config } from "../platform/config/config.ts";
import { BudgetSpent, createLookupBudget } from "../platform/db/lookup-budget.ts";
import { eachNetwork, NETWORKS } from "../platform/networks.ts";
import { type Platform, type Slice, under } from "../platform/slice.ts";
import { createAuthorizationReader } from "./chain.ts";
import { createLookUp } from "./look-up.ts";
import type { FinalFacts, HearAsked } from "./reading.ts";
import { type SettlementParts, settlementRoutes } from "./routes.ts";
import { createStatements } from "./sell-statement.ts";
import { createAuthorizationFacts, createKnownTransactions } from "./store.ts";

export type { HearAsked } from "./reading.ts";

interface SettlementNeeds {
  /** Called with every question, in this order. */
  readonly heard: readonly HearAsked[];
}

/** Creates the look-ups of whether a USDC authorization, of any payer, has settled. */
export const createSettlementStatus = (...given: Parameters<typeof settlementParts>): Slice => ({
  routes: under("Settlement", settlementRoutes(settlementParts(...given))),
  jobs: [],
});

/**
 * Creates the free look-ups and the paid statements. Each has its own queue and searches, so that a flood of free look-ups
 * does not block buyers.
 */
export function settlementParts(
  { pool, chains, log, now, peers: clients, keys: { signer } }: Platform,
  { lookUps: { perClient, perHour } }: Pick<Config, "lookUps">,
  { heard }: SettlementNeeds,
): SettlementParts {
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
  const { lookUp } = looking();
  const statements = createStatements({ ...looking(), maySearch: maySearch("statement "), signer, now });
  return { lookUp, maySearch: maySearch("settlement "), statements, clients, heard, now, failed };
}

/** Falls back to the chain, which shows the same facts, if the database is unreachable. */
const whereKept = (facts: FinalFacts, failed: (error: unknown, what: string) => void): FinalFacts => {
  const missed =
    <Value>(instead: Value) =>
    (error: unknown): Value => {
      failed(error, "a final fact about an authorization could not be read or stored");
      return instead;
    };
  return {
    get: (name, validBefore) => facts.get(name, validBefore).catch(missed({ end: null, unusedBefore: null })),
    putEnd: (name, end) => facts.putEnd(name, end).catch(missed(undefined)),
    putUnused: (name, validBefore, block) => facts.putUnused(name, validBefore, block).catch(missed(block)),
  };
};
