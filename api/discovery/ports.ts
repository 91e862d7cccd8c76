import type { IndexPosition } from "../kernel/activity.ts";
import type { Network } from "../kernel/networks.ts";

/** What the status page looks at. Each method rejects when its part does not answer. */
export interface Probes {
  readonly networks: readonly Network[];
  readonly settlementMode: "in-process" | "remote";
  database(): Promise<void>;
  chain(network: Network): Promise<{ readonly block: number; readonly finalizedBlock: number; readonly time: bigint }>;
  /** Null before the first backfill has ended. */
  index(): Promise<IndexPosition | null>;
  /** The account that pays for gas; null with a remote facilitator. */
  relayer(): Promise<{ readonly address: string; readonly balanceWei: bigint } | null>;
  payments(): Promise<{ readonly unresolved: number; readonly oldestSeconds: number | null }>;
}
