import type { IndexPosition } from "../platform/index/position.ts";
import type { Network } from "../platform/networks.ts";
import type { JobHealth } from "../platform/jobs/job-watch.ts";
import type { LogFacts } from "./log-status.ts";
import type { Sender } from "./status.ts";

/** What the status page and the metrics look at. Each method rejects if its part does not answer. */
export interface Probes {
  readonly networks: readonly Network[];
  readonly settlementMode: "in-process" | "remote";
  readonly senders: readonly Sender[];
  database(): Promise<void>;
  chain(network: Network): Promise<{ readonly block: number; readonly finalizedBlock: number; readonly time: bigint }>;
  /** Null until the first backfill has finished. */
  index(): Promise<IndexPosition | null>;
  sender(sender: Sender): Promise<SenderFacts>;
  /** Whether the remote facilitator is reachable; the in-process one always is. */
  facilitator(): Promise<void>;
  payments(): Promise<{ readonly unresolved: number; readonly oldestSeconds: number | null }>;
  log(): Promise<LogFacts>;
  jobs(): readonly JobHealth[];
  /** Resolves to null after `ms` milliseconds, without keeping the process alive. */
  late(ms: number): Promise<null>;
}

export interface SenderFacts {
  readonly balanceWei: bigint;
  /** What sending an ordinary payment costs at the moment. */
  readonly costWei: bigint;
  /** Transactions not in a block yet. */
  readonly unmined: number;
  /** Of the oldest of them; null if there are none. */
  readonly oldestUnminedSeconds: number | null;
}
