import { createOfferReceipt } from "../../payments/receipt.ts";
import type { Config } from "../config/config.ts";
import { didWeb, keyUrl } from "./did.ts";
import { createSigner } from "./document.ts";
import { compactJws, flattenedJws } from "./jws.ts";
import { publicKeys, signingKey } from "./keys.ts";

/** Everything that is signed with the service's own key. */
export async function wireSigning({ baseUrl, ...config }: Config) {
  const key = await signingKey(config.signingKey);
  const did = didWeb(baseUrl);
  return {
    signer: createSigner(key, did),
    signJws: flattenedJws(key, { typ: "JOSE", jku: `${baseUrl}/.well-known/jwks.json` }),
    offerReceipt: createOfferReceipt(compactJws(key, keyUrl(did, key.publicJwk))),
    publicKeys: await publicKeys(key.publicJwk, config.retiredSigningKeys),
  };
}
