import type pg from "pg";
import type { VerdictStore } from "../arbiter/store.ts";
import type { CertificateStore } from "../certificates/store.ts";
import { ESCROW_NETWORK } from "../escrow/payment.ts";
import type { Journal } from "../payments/journal.ts";
import type { ChainReader } from "../platform/chain/chain.ts";
import { elapsedMs } from "../platform/clock.ts";
import type { Config } from "../platform/config/config.ts";
import type { IndexPosition } from "../platform/index/activity.ts";
import { createJobWatch } from "../platform/jobs/job-watch.ts";
import type { Meter } from "../platform/metrics/meter.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Relayer } from "../platform/relayer/relayer.ts";
import { countedCertificates, countedJournal, countedVerdicts } from "./counted.ts";
import type { LogFacts } from "./log-status.ts";
import { createProbes } from "./probes.ts";

export interface OperationWires {
  readonly config: Pick<Config, "facilitator">;
  readonly pool: pg.Pool;
  readonly chains: Readonly<Record<Network, ChainReader>>;
  /** Of the in-process facilitator; null with a remote one. */
  readonly facilitators: Readonly<Record<Network, Relayer>> | null;
  readonly arbiters: readonly Relayer[];
  readonly journal: Journal;
  readonly logFacts: () => Promise<LogFacts>;
  readonly position: () => Promise<IndexPosition | null>;
}

/** How the service is observed from outside, and the jobs of everything that sends transactions. */
export function wireOperations({ config, facilitators, arbiters, logFacts, ...parts }: OperationWires) {
  const watch = createJobWatch(() => new Date(), elapsedMs);
  const sending = [
    ...Object.entries(facilitators ?? {}).map(([network, relayer]) => ({
      role: "facilitator" as const,
      network: network as Network,
      relayer,
    })),
    ...arbiters.map((relayer) => ({ role: "arbiter" as const, network: ESCROW_NETWORK, relayer })),
  ];
  const probes = createProbes({
    ...parts,
    senders: sending.map(({ role, network, relayer: { address, costWei } }) => ({ role, network, address, costWei })),
    facilitator: "remote" in config.facilitator ? config.facilitator.remote : null,
    log: logFacts,
    jobs: watch.list,
  });
  const relayers = sending.map(({ role, network, relayer: { tend } }) => ({
    name: `relay ${role} ${NETWORKS[network].key}`,
    tend,
  }));
  return { watch, probes, relayers };
}

/** Wraps what the meter counts; without a meter everything stays as it was. */
export const wireMeter = (meter: Meter | null) => ({
  journal: (journal: Journal) => (meter === null ? journal : countedJournal(journal, meter, () => elapsedMs() / 1000)),
  certificates: (store: CertificateStore) => (meter === null ? store : countedCertificates(store, meter)),
  verdicts: (store: VerdictStore) => (meter === null ? store : countedVerdicts(store, meter)),
});
