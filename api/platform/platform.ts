import type pg from "pg";
import type { Logger } from "pino";
import { createChain } from "./chain/chain.ts";
import type { Config } from "./config/config.ts";
import { createSeal } from "./db/seal.ts";
import { createPeers } from "./http/peers.ts";
import type { Meter } from "./metrics/meter.ts";
import { eachNetwork } from "./networks.ts";
import { createServiceKeys } from "./signing/service-keys.ts";
import type { Platform } from "./slice.ts";

export interface PlatformParts {
  readonly log: Logger;
  readonly meter?: Meter | null | undefined;
  /** Defaults to the machine's clock. */
  readonly now?: (() => Date) | undefined;
  /** Whether new requests should be sent to this process; always by default. */
  readonly isReady?: (() => boolean) | undefined;
}

/** Creates the connections, keys, and clock that all slices share. It does not connect yet. */
export async function createPlatform(
  config: Config,
  pool: pg.Pool,
  { log, meter = null, now = () => new Date(), isReady = () => true }: PlatformParts,
): Promise<Platform> {
  const { rpcUrls, logBlockRange, rpcBatch } = config;
  return {
    pool,
    chains: eachNetwork((network) => createChain(network, { rpcUrl: rpcUrls[network], logBlockRange, rpcBatch })),
    keys: await createServiceKeys(config),
    seal: createSeal(config.sealingKey, config.retiredSealingKeys),
    peers: createPeers(config.trustedProxies),
    log,
    meter,
    now,
    isReady,
  };
}
