import { join } from "node:path";
import type pg from "pg";
import type { Logger } from "pino";
import type { PublicClient } from "viem";
import { escrowViewsOf } from "../api/kernel/index-views.ts";
import { type Head, isSyncing } from "./chain.ts";
import { chooseDeployment } from "./choose-deployment.ts";
import { costsOfFull, withScope } from "./choose-scope.ts";
import { countHoldsOf } from "./count-holds.ts";
import { chooseEscrowDeployment, escrowIndexPrefix } from "./escrows/choose-deployment.ts";
import { expectFit, isFinalOn, readHistory } from "./history/history.ts";
import { rememberMarks } from "./marks.ts";
import { ownInOneLine, readOwnAddresses } from "./own-address-table.ts";
import type { PonderPlan } from "./ponder-process.ts";
import { refetchPruned } from "./pruned.ts";
import type { IndexerSettings } from "./settings.ts";
import { shownSchema } from "./succession.ts";

/** The escrows' events are few: the heap is what Ponder itself needs. */
const ESCROW_HEAP_MIB = 256;

export interface Ready {
  /** With the operators. */
  readonly settings: IndexerSettings;
  readonly db: pg.Pool;
  readonly log: Logger;
  readonly chain: PublicClient;
  readonly head: Head;
}

/** A Ponder application beside others: they share the launcher and Ponder's copy of the chain, nothing else. */
export interface Root {
  readonly name: "payments" | "escrows";
  /** What the log says of it. */
  readonly says: { readonly started: string; readonly ready: string };
  /** Everything that must hold before its Ponder starts; a reason while nothing can be decided. */
  readonly prepare: (ready: Ready) => Promise<PonderPlan | { readonly reason: string }>;
}

const PAYMENTS: Root = {
  name: "payments",
  says: { started: "ponder started", ready: "index ready" },
  prepare: preparePayments,
};

const ESCROWS: Root = {
  name: "escrows",
  says: { started: "escrow ponder started", ready: "escrow index ready" },
  prepare: prepareEscrows,
};

/** The applications that these settings need: without an escrow there is one. */
export const rootsOf = ({ escrows }: Pick<IndexerSettings, "escrows">): readonly Root[] =>
  escrows.length === 0 ? [PAYMENTS] : [PAYMENTS, ESCROWS];

async function preparePayments({ settings: given, db, log, chain, head }: Ready): ReturnType<Root["prepare"]> {
  const settings = await withScope(given, db);
  if (settings.scope !== given.scope)
    log.warn(
      { scope: settings.scope, default: given.scope },
      "INDEX_SCOPE is not set, so the index keeps the scope that it has",
    );
  const history = settings.historySchema === null ? null : await readHistory(db, settings.historySchema);
  if (history !== null) {
    expectFit(history, settings);
    if (!(await isFinalOn(chain, head, history)))
      return { reason: "the history's last block is not final on the node" };
  }
  const countHolds = countHoldsOf(chain, settings.escrowStartBlock);
  const deployment = await chooseDeployment(db, settings, {
    ...{ head: head.number, isSyncing: () => isSyncing(chain) },
    ...{ history, countHolds },
  });
  const { schema, startBlock } = deployment;
  await rememberMarks(db, chain, { head: head.number, startBlock });
  const readsFrom = history === null ? startBlock : history.lastBlock + 1;
  const refetched = await refetchPruned(db, deployment, readsFrom);
  // A local chain is small; OTHER_CHAIN=drop suits no other.
  if (
    settings.scope === "full" &&
    settings.otherChain === "stop" &&
    (await shownSchema(db, settings.viewsSchema)) !== schema
  )
    log.warn(costsOfFull(head.number - readsFrom), "scope full reads every transfer of USDC; on Base that costs about");
  if (refetched !== null) log.warn({ ...deployment, refetched }, "blocks that were pruned are fetched again");
  const own = await readOwnAddresses(db, schema);
  const late = own.filter(({ escrowFrom }) => (escrowFrom ?? 0) > 0);
  return {
    ...{ deployment, viewsSchema: settings.viewsSchema, prefix: settings.viewsSchema, folder: import.meta.dirname },
    ...{ heapMiB: settings.heapMiB, port: settings.ponderPort },
    env: {
      OWN_ROWS: ownInOneLine(own),
      OWN_ADDRESSES: own.map(({ address, fromBlock }) => `${address}=${fromBlock}`).join(","),
      ESCROWS_FROM: late.map(({ address, escrowFrom }) => `${address}=${escrowFrom}`).join(","),
      // At the latest from the index's own start, which the schema's name fixes.
      ESCROW_START_BLOCK: String(Math.min(settings.escrowStartBlock, startBlock)),
      INDEX_SCOPE: settings.scope,
      FIRST_BLOCK: String(startBlock),
      START_BLOCK: String(readsFrom),
      HISTORY_SCHEMA: history?.schema ?? "",
      HISTORY_ID: history?.id ?? "",
    },
  };
}

/** What is pruned of Ponder's copy concerns no escrow: its logs stay, and with them their blocks and transactions. */
async function prepareEscrows({ settings, db, head }: Ready): ReturnType<Root["prepare"]> {
  const deployment = await chooseEscrowDeployment(db, settings, head.number);
  return {
    ...{ deployment, viewsSchema: escrowViewsOf(settings.viewsSchema) },
    ...{ prefix: escrowIndexPrefix(settings.viewsSchema), folder: join(import.meta.dirname, "escrows") },
    heapMiB: Math.min(settings.heapMiB, ESCROW_HEAP_MIB),
    port: settings.ponderPort === 0 ? 0 : settings.ponderPort + 1,
    env: {
      CUSTODIES: [...new Set(settings.operators.map(({ custody }) => custody))].join(","),
      ESCROW_START_BLOCK: String(deployment.startBlock),
    },
  };
}
