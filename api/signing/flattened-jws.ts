import { sign } from "node:crypto";
import type { SigningKey } from "./keys.ts";

/** A flattened JWS (RFC 7515, section 7.2.2) without its payload. */
export interface FlattenedJws {
  readonly protected: string;
  readonly signature: string;
}

const base64url = (text: string): string => Buffer.from(text).toString("base64url");

/** Signs texts whose verifiers already have the payload. `jku` is the address of the key set. */
export function flattenedJws({ privateKey, publicJwk }: SigningKey, jku: string): (payload: string) => FlattenedJws {
  const header = base64url(JSON.stringify({ alg: "EdDSA", typ: "JOSE", kid: publicJwk.kid, jku }));
  return (payload) => ({
    protected: header,
    signature: sign(null, Buffer.from(`${header}.${base64url(payload)}`), privateKey).toString("base64url"),
  });
}
