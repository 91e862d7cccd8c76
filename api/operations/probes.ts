import type { IndexPosition } from "../kernel/activity.ts";
import type { Network } from "../kernel/networks.ts";
import type { JobHealth } from "./job-watch.ts";
import type { Sender } from "./status.ts";

/** What the status page and the metrics look at. Each method rejects when its part does not answer. */
export interface Probes {
  readonly networks: readonly Network[];
  readonly settlementMode: "in-process" | "remote";
  readonly senders: readonly Sender[];
  database(): Promise<void>;
  chain(network: Network): Promise<{ readonly block: number; readonly finalizedBlock: number; readonly time: bigint }>;
  /** Null before the first backfill has ended. */
  index(): Promise<IndexPosition | null>;
  sender(sender: Sender): Promise<SenderFacts>;
  /** Whether the remote facilitator is there; the one in this process always is. */
  facilitator(): Promise<void>;
  payments(): Promise<{ readonly unresolved: number; readonly oldestSeconds: number | null }>;
  jobs(): readonly JobHealth[];
  /** Null after so many milliseconds; keeps no process alive. */
  late(ms: number): Promise<null>;
}

export interface SenderFacts {
  readonly balanceWei: bigint;
  /** Transactions that no block has yet. */
  readonly unmined: number;
  /** Of the oldest of them; null when there is none. */
  readonly oldestUnminedSeconds: number | null;
}
