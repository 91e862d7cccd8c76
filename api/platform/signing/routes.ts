import type { Context } from "hono";
import type { Config } from "../config/config.ts";
import type { Route } from "../http/route.ts";
import { didOfHost, didWeb, issuerDocument } from "./did.ts";
import type { PublicJwk } from "./keys.ts";
import { DID, JWKS } from "./schemas.ts";

const CACHED = { "cache-control": "public, max-age=300" };

type Published = Pick<Config, "baseUrl" | "formerHosts">;

/** Serves the keys to verifiers, the current one first, then the retired ones. */
export function signingRoutes(keys: readonly PublicJwk[], { baseUrl, formerHosts }: Published): readonly Route[] {
  const of = (host: string) => {
    const document = issuerDocument(didOfHost(host), keys, `${baseUrl}/log`);
    const others = [didWeb(baseUrl), ...formerHosts.map(didOfHost)].filter((did) => did !== document.id);
    return others.length === 0 ? document : { ...document, alsoKnownAs: others };
  };
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
      // A document signed under a former host has that host's identifier, so resolvers send requests there.
      handle: (c) => {
        const host = c.req.header("host")?.toLowerCase() ?? "";
        return serve(of(formerHosts.includes(host) ? host : new URL(baseUrl).host), "application/did+ld+json")(c);
      },
    },
  ];
}
