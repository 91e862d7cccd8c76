import type { Network } from "../platform/networks.ts";
import type { JobHealth } from "../platform/jobs/job-watch.ts";
import { type LogStatus, logDocument } from "./log-status.ts";

export interface ChainStatus {
  readonly network: Network;
  readonly ok: boolean;
  /** Null while the chain does not answer. */
  readonly block: number | null;
  readonly finalizedBlock: number | null;
  /** Age of the newest block. */
  readonly lagSeconds: number | null;
}

/** An account whose transactions the service sends and pays gas for. */
export interface Sender {
  readonly role: "facilitator" | "arbiter";
  readonly network: Network;
  readonly address: string;
}

export interface SenderStatus extends Sender {
  readonly ok: boolean;
  /** Null, like the next three, while the chain or the database does not answer. */
  readonly balanceWei: bigint | null;
  /** What sending an ordinary payment costs at the moment. */
  readonly costWei: bigint | null;
  /** Transactions not in a block yet. */
  readonly unmined: number | null;
  /** Also null if there are none. */
  readonly oldestUnminedSeconds: number | null;
}

/** What the service found when it last checked its own parts. */
export interface ServiceStatus {
  readonly ok: boolean;
  readonly checkedAt: Date;
  readonly version: string;
  readonly database: { readonly ok: boolean };
  readonly chains: readonly ChainStatus[];
  readonly indexer: {
    readonly ok: boolean;
    readonly ready: boolean;
    /** Null until the first backfill has finished. */
    readonly block: number | null;
    readonly lagSeconds: number | null;
    /** Why the index counts as unavailable; null if it does not. */
    readonly reason: string | null;
  };
  readonly settlement: {
    readonly ok: boolean;
    readonly mode: "in-process" | "remote";
    readonly address?: string;
    readonly balanceWei?: bigint;
  };
  readonly senders: readonly SenderStatus[];
  /** The recurring jobs of the answering process. */
  readonly jobs: readonly JobHealth[];
  /** Null while the database does not answer. */
  readonly log: LogStatus | null;
  readonly payments: {
    /** Payments whose outcome is still unknown. */
    readonly unresolved: number;
    readonly oldestUnresolvedSeconds: number | null;
  };
}

/** The status as its JSON document: names in snake_case, time in ISO 8601, wei as decimal text. */
export const statusDocument = (status: ServiceStatus) => ({
  ok: status.ok,
  checked_at: status.checkedAt.toISOString(),
  version: status.version,
  database: { ok: status.database.ok },
  chains: status.chains.map(({ network, ok, block, finalizedBlock, lagSeconds }) => ({
    network,
    ok,
    block,
    finalized_block: finalizedBlock,
    lag_seconds: lagSeconds,
  })),
  indexer: {
    ok: status.indexer.ok,
    ready: status.indexer.ready,
    block: status.indexer.block,
    lag_seconds: status.indexer.lagSeconds,
    reason: status.indexer.reason,
  },
  settlement: {
    ok: status.settlement.ok,
    mode: status.settlement.mode,
    ...(status.settlement.address !== undefined && { address: status.settlement.address }),
    ...(status.settlement.balanceWei !== undefined && { balance_wei: status.settlement.balanceWei.toString() }),
  },
  senders: status.senders.map(({ role, network, address, ok, balanceWei, costWei, unmined, oldestUnminedSeconds }) => ({
    role,
    network,
    address,
    ok,
    balance_wei: balanceWei?.toString() ?? null,
    cost_wei: costWei?.toString() ?? null,
    unmined,
    oldest_unmined_seconds: oldestUnminedSeconds,
  })),
  jobs: status.jobs.map(({ name, ok, runs, failures, lastSuccessAt }) => ({
    name,
    ok,
    runs,
    failures,
    last_success_at: lastSuccessAt?.toISOString() ?? null,
  })),
  log: logDocument(status.log),
  payments: {
    unresolved: status.payments.unresolved,
    oldest_unresolved_seconds: status.payments.oldestUnresolvedSeconds,
  },
});
