import type pg from "pg";
import type { Logger } from "pino";
import { createBatching } from "./settle/batching.ts";
import { createChain } from "../platform/chain/chain-reader.ts";
import { createInProcessSettler, createRemoteSettler } from "./settle/facilitator.ts";
import { SHARES } from "../platform/relayer/places.ts";
import { createRelayer } from "../platform/relayer/relayer.ts";
import { transfersTo } from "./settle/shared-transfers.ts";
import { createTransferSimulator, type SimulatorParts } from "./settle/transfer.ts";
import type { Config } from "../platform/config/config.ts";
import { eachNetwork, MAIN_NETWORK, NETWORKS, type Network } from "../platform/networks.ts";
import type { Meter } from "../platform/metrics/meter.ts";

export interface ChainWires {
  readonly pool: pg.Pool;
  readonly log: Logger;
  readonly meter: Meter | null;
}

/** The test network's gas has no value. */
const mostLostWei = ({ failedGasWei }: Config, network: Network): bigint | null =>
  network === MAIN_NETWORK ? failedGasWei : null;

/** Everything that talks to chains and facilitators. */
export function wireChains(config: Config, { pool, log, meter }: ChainWires) {
  const { rpcUrls, logBlockRange, rpcBatch } = config;
  const chains = eachNetwork((network) => createChain(network, { rpcUrl: rpcUrls[network], logBlockRange, rpcBatch }));
  // The test network's money has no value, and its gas neither.
  const ceilings = eachNetwork((network) => (network === MAIN_NETWORK ? config.costCeiling : null));
  const simulator = (network: Network, by: Pick<SimulatorParts, "sentBy" | "simulateTogether">) =>
    createTransferSimulator({
      client: chains[network].client,
      network: NETWORKS[network],
      ceiling: ceilings[network],
      ...by,
    });
  if ("remote" in config.facilitator) {
    const settler = createRemoteSettler(config.facilitator.remote);
    const simulators = eachNetwork((network) =>
      simulator(network, { sentBy: null, simulateTogether: async () => null }),
    );
    return { chains, relayers: null, settler, simulators };
  }
  const { privateKey } = config.facilitator;
  const lanes = eachNetwork((network) => {
    const { client } = chains[network];
    const { chainId } = NETWORKS[network];
    const relayer = createRelayer({
      pool,
      log,
      privateKey,
      client,
      chainId,
      counter: meter && {
        relayed: (mined) => meter.relayed(network, mined),
        replaced: () => meter.replaced(network),
        turnedAway: (because) => meter.turnedAway(network, because),
      },
      shares: SHARES.facilitator,
      mostLostWei: mostLostWei(config, network),
    });
    const { payTo, batches: policy } = config;
    const sharing = transfersTo({ usdc: NETWORKS[network].usdc.address, payTo });
    return {
      relayer,
      ceiling: ceilings[network],
      batching: createBatching({ client, network: NETWORKS[network], relayer, sharing, policy, log, meter }),
    };
  });
  return {
    chains,
    relayers: eachNetwork((network) => lanes[network].relayer),
    settler: createInProcessSettler(lanes),
    simulators: eachNetwork((network) => {
      const { relayer, batching } = lanes[network];
      return simulator(network, { sentBy: relayer, simulateTogether: batching.simulate });
    }),
  };
}
