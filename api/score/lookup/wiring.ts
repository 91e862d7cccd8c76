import { randomUUID } from "node:crypto";
import type pg from "pg";
import { openProvider } from "../../../indexer/fetch/provider.ts";
import { createInflowReader } from "./chain.ts";
import { createPayeesIndex } from "./payees.ts";
import { createLookupBudget } from "../../platform/db/lookup-budget.ts";
import { createMarkStore } from "./marks-store.ts";
import { createLookupStore } from "./store.ts";
import { every, sleep } from "../../platform/clock.ts";
import type { Config } from "../../platform/config/config.ts";
import type { Address } from "../../platform/wallet.ts";
import type { EscrowContract } from "../../payments/schemes/escrowed/contract.ts";
import { createLookUps, type LookUps } from "./look-up.ts";

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
