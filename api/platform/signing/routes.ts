import type { Context } from "hono";
import type { Route } from "../http/route.ts";
import { didWeb, issuerDocument } from "./did.ts";
import type { PublicJwk } from "./keys.ts";
import { DID, JWKS } from "./schemas.ts";

const CACHED = { "cache-control": "public, max-age=300" };

/** Serves the keys to verifiers: the current one first, then the retired ones. */
export function signingRoutes(keys: readonly PublicJwk[], baseUrl: string): readonly Route[] {
  const did = issuerDocument(didWeb(baseUrl), keys, `${baseUrl}/log`);
  const serve = (body: object, type: string) => (c: Context) => c.json(body, 200, { "content-type": type, ...CACHED });
  return [
    {
      method: "GET",
      path: "/.well-known/jwks.json",
      summary: "Ed25519 public keys for verifying signed documents",
      output: { "application/jwk-set+json": JWKS },
      handle: serve({ keys }, "application/jwk-set+json"),
    },
    {
      method: "GET",
      path: "/.well-known/did.json",
      summary: "The same keys as the issuer's DID document",
      output: { "application/did+ld+json": DID },
      handle: serve(did, "application/did+ld+json"),
    },
  ];
}
