import type { Route } from "../kernel/route.ts";
import type { PublicJwk } from "./keys.ts";

export const signingRoutes = (keys: readonly PublicJwk[]): readonly Route[] => [
  {
    method: "GET",
    path: "/.well-known/jwks.json",
    summary: "The Ed25519 public keys that verify signed documents",
    handle: (c) =>
      c.json({ keys }, 200, { "content-type": "application/jwk-set+json", "cache-control": "public, max-age=300" }),
  },
];
