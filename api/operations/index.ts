import type { LogFacts } from "../log/index.ts";
import type { Payments } from "../payments/index.ts";
import { elapsedMs, sleep } from "../platform/clock.ts";
import type { Config } from "../platform/config/config.ts";
import { createPrunings } from "../platform/db/prunings.ts";
import type { IndexPosition } from "../platform/index/activity.ts";
import { createJobWatch } from "../platform/jobs/job-watch.ts";
import { MAIN_NETWORK, NETWORKS, type Network } from "../platform/networks.ts";
import type { Relayer } from "../platform/relayer/relayer.ts";
import { createRelayPruning } from "../platform/relayer/store.ts";
import { type Job, type Platform, under } from "../platform/slice.ts";
import { createObservations } from "./observation-store.ts";
import { createProbes } from "./probes.ts";
import { statusRoutes } from "./routes.ts";
import type { Sender } from "./schemas.ts";
import { chainFacts } from "./status.ts";

interface OperationNeeds {
  readonly payments: Pick<Payments, "journal" | "relayers" | "usdc">;
  /** The arbiter's account; null if it sends no transactions. */
  readonly arbiter: Relayer | null;
  readonly logFacts: () => Promise<LogFacts>;
  readonly position: () => Promise<IndexPosition | null>;
}

const PRUNE_PAUSE_MS = 50;

/**
 * Creates the operations slice: the status of every part, the relayers' upkeep, and the deletion of rows that are no
 * longer needed.
 */
export function createOperations(platform: Platform, config: Pick<Config, "facilitator">, needs: OperationNeeds) {
  const { pool, chains, meter, now, isReady } = platform;
  const {
    payments: { journal, relayers, usdc },
    arbiter,
    logFacts,
    position,
  } = needs;
  const watch = createJobWatch(() => new Date(), elapsedMs);
  const sending: readonly (Omit<Sender, "address"> & { readonly relayer: Relayer })[] = [
    ...Object.entries(relayers ?? {}).map(([network, relayer]) => ({
      role: "facilitator" as const,
      network: network as Network,
      relayer,
    })),
    ...(arbiter === null ? [] : [{ role: "arbiter" as const, network: MAIN_NETWORK as Network, relayer: arbiter }]),
  ];
  const probes = createProbes({
    pool,
    chains,
    journal,
    usdc: usdc.state,
    position,
    senders: sending.map(({ role, network, relayer: { address, costWei } }) => ({ role, network, address, costWei })),
    facilitator: "remote" in config.facilitator ? config.facilitator.remote : null,
    log: logFacts,
    jobs: watch.list,
  });
  const observations = createObservations(pool, () => chainFacts(probes, now()));
  const prunings = [journal.prune, createRelayPruning(pool), ...createPrunings(pool)];
  const jobs: readonly Job[] = [
    {
      name: "prune",
      everyMs: 60_000,
      run: async () => {
        for (const prune of prunings) while ((await prune()) > 0) await sleep(PRUNE_PAUSE_MS);
      },
    },
    ...(meter === null ? [] : [observations.job]),
    ...sending.map(({ role, network, relayer: { tend } }) => ({
      name: `relay ${role} ${NETWORKS[network].key}`,
      everyMs: 2_000,
      run: tend,
    })),
  ];
  return {
    watch,
    probes,
    observed: observations.read,
    jobs,
    routes: under("Discovery", statusRoutes({ probes, now, isReady })),
  };
}
