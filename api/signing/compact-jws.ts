import { sign } from "node:crypto";
import type { SigningKey } from "./keys.ts";

const base64url = (text: string): string => Buffer.from(text).toString("base64url");

/** Signs texts that travel with their signature: a compact JWS (RFC 7515, section 3.1). `kid` is a DID URL. */
export function compactJws({ privateKey }: SigningKey, kid: string): (payload: string) => string {
  const header = base64url(JSON.stringify({ alg: "EdDSA", kid }));
  return (payload) => {
    const signed = `${header}.${base64url(payload)}`;
    return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString("base64url")}`;
  };
}
