import { CompactSign } from "jose";
import type { SigningKey } from "./keys.ts";

/** Signs texts that travel with their signature: a compact JWS (RFC 7515, section 3.1). `kid` is a DID URL. */
export const compactJws =
  ({ privateKey }: SigningKey, kid: string) =>
  (payload: string): Promise<string> =>
    new CompactSign(Buffer.from(payload)).setProtectedHeader({ alg: "EdDSA", kid }).sign(privateKey);
