import { randomBytes } from "node:crypto";
import { SignJWT } from "jose";
import type { FacilitatorAuth } from "../../platform/config/facilitator-auth.ts";

const TOKEN_SECONDS = 120;

/** Returns the request headers that authenticate one `POST` to a facilitator; empty without `auth`. */
export async function logIn(auth: FacilitatorAuth | undefined, endpoint: URL): Promise<Record<string, string>> {
  if (auth === undefined) return {};
  switch (auth.type) {
    case "header":
      return { [auth.name]: auth.value };
    case "cdp":
      return { authorization: `Bearer ${await cdpToken(auth, endpoint)}` };
    default:
      return auth satisfies never;
  }
}

/** Returns a token for one endpoint, as the Coinbase Developer Platform defines it. */
function cdpToken(
  { keyId, privateKey }: Extract<FacilitatorAuth, { type: "cdp" }>,
  { host, pathname }: URL,
): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  return new SignJWT({ sub: keyId, iss: "cdp", uris: [`POST ${host}${pathname}`] })
    .setProtectedHeader({ alg: "EdDSA", kid: keyId, typ: "JWT", nonce: randomBytes(16).toString("hex") })
    .setIssuedAt(now)
    .setNotBefore(now)
    .setExpirationTime(now + TOKEN_SECONDS)
    .sign(privateKey);
}
