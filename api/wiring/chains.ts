import type pg from "pg";
import type { Logger } from "pino";
import { createChain } from "../adapters/chain/chain-reader.ts";
import { createInProcessSettler, createRemoteSettler } from "../adapters/chain/facilitator.ts";
import { createRelayer, type Relayer } from "../adapters/chain/relayer/relayer.ts";
import { createTransferSimulator } from "../adapters/chain/transfer.ts";
import type { Config } from "../config.ts";
import { eachNetwork, NETWORKS, type Network } from "../kernel/networks.ts";

/** Everything that talks to chains and facilitators. */
export function wireChains(config: Config, pool: pg.Pool, log: Logger) {
  const { rpcUrls, logBlockRange } = config;
  const chains = eachNetwork((network) => createChain(network, { rpcUrl: rpcUrls[network], logBlockRange }));
  const simulators = (sentBy: (network: Network) => Relayer | null) =>
    eachNetwork((network) =>
      createTransferSimulator({
        client: chains[network].client,
        network: NETWORKS[network],
        sentBy: sentBy(network),
        ceiling: config.costCeiling,
      }),
    );
  if ("remote" in config.facilitator) {
    const settler = createRemoteSettler(config.facilitator.remote);
    return { chains, relayers: null, settler, simulators: simulators(() => null) };
  }
  const { privateKey } = config.facilitator;
  const relayers = eachNetwork((network) =>
    createRelayer({ pool, log, privateKey, client: chains[network].client, chainId: NETWORKS[network].chainId }),
  );
  const settler = createInProcessSettler(relayers);
  return { chains, relayers, settler, simulators: simulators((network) => relayers[network]) };
}
