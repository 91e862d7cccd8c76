import type pg from "pg";
import type { Logger } from "pino";
import type { ChainReader } from "../platform/chain/chain.ts";
import { elapsedMs } from "../platform/clock.ts";
import type { Config } from "../platform/config/config.ts";
import { createLookupBudget } from "../platform/db/lookup-budget.ts";
import type { Clients } from "../platform/http/request.ts";
import { eachNetwork, NETWORKS, type Network } from "../platform/networks.ts";
import type { Signer } from "../platform/signing/document.ts";
import { BudgetSpent } from "../score/lookup/inflows.ts";
import { createAuthorizationReader } from "./chain.ts";
import { createLookUp } from "./look-up.ts";
import type { FinalFacts, HearAsked } from "./reading.ts";
import type { SettlementRouteParts } from "./routes.ts";
import { createStatements } from "./sell-statement.ts";
import { createAuthorizationFacts, createKnownTransactions } from "./store.ts";

export interface SettlementWires {
  readonly config: Pick<Config, "lookUps">;
  readonly pool: pg.Pool;
  readonly chains: Readonly<Record<Network, ChainReader>>;
  readonly log: Logger;
  readonly now: () => Date;
  readonly peers: Clients;
  readonly heard: readonly HearAsked[];
  readonly signer: Signer;
}

/** What became of authorizations, of any payer. */
export function wireSettlements({
  config,
  pool,
  chains,
  log,
  now,
  peers: clients,
  heard,
  signer,
}: SettlementWires): SettlementRouteParts {
  const { perClient, perHour } = config.lookUps;
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
