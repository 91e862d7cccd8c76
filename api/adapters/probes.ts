import type pg from "pg";
import type { Probes } from "../discovery/ports.ts";
import type { IndexPosition } from "../kernel/activity.ts";
import type { Network } from "../kernel/networks.ts";
import type { Journal } from "../payments/ports.ts";
import type { ChainReader } from "./chain.ts";
import type { Relayer } from "./relayer.ts";

export interface ProbeParts {
  readonly pool: pg.Pool;
  readonly chains: Readonly<Record<Network, ChainReader>>;
  readonly relayers: Readonly<Record<Network, Relayer>> | null;
  readonly journal: Journal;
  readonly position: () => Promise<IndexPosition | null>;
}

export const createProbes = ({ pool, chains, relayers, journal, position }: ProbeParts): Probes => ({
  networks: Object.keys(chains) as Network[],
  settlementMode: relayers === null ? "remote" : "in-process",
  async database() {
    await pool.query("SELECT 1");
  },
  async chain(network) {
    const [head, finalizedBlock] = await Promise.all([chains[network].head(), chains[network].finalizedBlock()]);
    return { block: head.number, finalizedBlock, time: head.time };
  },
  index: position,
  async relayer() {
    const relayer = relayers?.["eip155:8453"];
    return relayer ? { address: relayer.address, balanceWei: await relayer.balanceWei() } : null;
  },
  payments: () => journal.backlog(),
});
