import { createPrivateKey, type KeyObject } from "node:crypto";
import { z } from "zod";

/** The login to a remote facilitator. */
export type FacilitatorAuth =
  | { readonly type: "header"; readonly name: string; readonly value: string }
  /** An Ed25519 key of the Coinbase Developer Platform, which signs a token for each request. */
  | { readonly type: "cdp"; readonly keyId: string; readonly privateKey: KeyObject };

const EXPECTED =
  'expected "Bearer TOKEN" or "Basic CREDENTIALS", "NAME: VALUE" for another header, or "CDP KEY_ID SECRET" with an Ed25519 secret (64 bytes in base64)';

/** Parses the value of `FACILITATOR_AUTH`. Errors never repeat it, because it is a secret. */
export const facilitatorAuth = z.string().transform((text, context): FacilitatorAuth => {
  const auth = parsed(text.trim());
  if (auth === null) context.addIssue({ code: "custom", message: EXPECTED });
  return auth ?? { type: "header", name: "authorization", value: "" };
});

function parsed(text: string): FacilitatorAuth | null {
  const [, keyId, secret] = /^CDP (\S+) (\S+)$/.exec(text) ?? [];
  if (keyId !== undefined && secret !== undefined) return cdpKey(keyId, secret);
  if (/^(?:Bearer|Basic) [\x21-\x7e]+$/.test(text)) return { type: "header", name: "authorization", value: text };
  const [, name, value] = /^([\w-]+): ?([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)$/.exec(text) ?? [];
  return name !== undefined && value !== undefined ? { type: "header", name: name.toLowerCase(), value } : null;
}

/** The secret consists of the seed and the public key. */
function cdpKey(keyId: string, secret: string): FacilitatorAuth | null {
  const bytes = Buffer.from(secret, "base64");
  if (bytes.length !== 64) return null;
  const [d, x] = [bytes.subarray(0, 32), bytes.subarray(32)].map((part) => part.toString("base64url"));
  try {
    const key = { kty: "OKP", crv: "Ed25519", d: d ?? "", x: x ?? "" };
    return { type: "cdp", keyId, privateKey: createPrivateKey({ key, format: "jwk" }) };
  } catch {
    return null;
  }
}
