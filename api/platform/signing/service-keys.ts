import type { Config } from "../config/config.ts";
import { didWeb, keyUrl } from "./did.ts";
import { createSigner, type Signer } from "./document.ts";
import { compactJws, type FlattenedJws, flattenedJws } from "./jws.ts";
import { type PublicJwk, publicKeys, signingKey } from "./keys.ts";

/** The signers that use the service's own key. */
export interface ServiceKeys {
  readonly signer: Signer;
  readonly signJws: (payload: string) => Promise<FlattenedJws>;
  readonly signCompact: ReturnType<typeof compactJws>;
  /** The published keys, the current one first, then the retired ones. */
  readonly published: readonly PublicJwk[];
}

export async function createServiceKeys({
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
