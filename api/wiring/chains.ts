import type pg from "pg";
import type { Logger } from "pino";
import { createChain } from "../adapters/chain/chain-reader.ts";
import { createInProcessSettler, createRemoteSettler } from "../adapters/chain/facilitator.ts";
import { createRelayer } from "../adapters/chain/relayer.ts";
import type { Config } from "../config.ts";
import { eachNetwork, NETWORKS } from "../kernel/networks.ts";

/** Everything that talks to chains and facilitators. */
export function wireChains(config: Config, pool: pg.Pool, log: Logger) {
  const chains = eachNetwork((network) => createChain(network, config.rpcUrls[network]));
  if ("remote" in config.facilitator)
    return { chains, relayers: null, settler: createRemoteSettler(config.facilitator.remote) };
  const { privateKey } = config.facilitator;
  const relayers = eachNetwork((network) =>
    createRelayer({ pool, log, privateKey, client: chains[network].client, chainId: NETWORKS[network].chainId }),
  );
  return {
    chains,
    relayers,
    settler: createInProcessSettler(
      eachNetwork((network) => ({ client: chains[network].client, relayer: relayers[network] })),
    ),
  };
}
