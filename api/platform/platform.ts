import type pg from "pg";
import type { Logger } from "pino";
import { createChain } from "./chain/chain.ts";
import type { Config } from "./config/config.ts";
import { createSeal } from "./db/seal.ts";
import { createPeers } from "./http/peers.ts";
import type { Meter } from "./metrics/meter.ts";
import { eachNetwork } from "./networks.ts";
import { didWeb, keyUrl } from "./signing/did.ts";
import { compactJws, createSigner, flattenedJws } from "./signing/document.ts";
import { publicKeys, signingKey } from "./signing/keys.ts";
import type { Platform, ServiceKeys } from "./slice.ts";

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

async function createServiceKeys({
  baseUrl,
  signingKey: secret,
  retiredSigningKeys,
}: Pick<Config, "baseUrl" | "signingKey" | "retiredSigningKeys">): Promise<ServiceKeys> {
  const key = await signingKey(secret);
  const did = didWeb(baseUrl);
  return {
    signer: createSigner(key, did),
    signJws: flattenedJws(key, { typ: "JOSE", jku: `${baseUrl}/.well-known/jwks.json` }),
    signCompact: compactJws(key, keyUrl(did, key.publicJwk)),
    published: await publicKeys(key.publicJwk, retiredSigningKeys),
  };
}
