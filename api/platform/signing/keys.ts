import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { calculateJwkThumbprint } from "jose";

/** The DER frame of an Ed25519 private key in PKCS #8 (RFC 8410); the 32-byte key follows. */
const PKCS8_ED25519 = Buffer.from("302e020100300506032b657004220420", "hex");

/** A public Ed25519 key in RFC 8037 form. */
export interface PublicJwk {
  readonly kty: "OKP";
  readonly crv: "Ed25519";
  /** 32 bytes as 43 base64url characters. */
  readonly x: string;
  /** RFC 7638 thumbprint. */
  readonly kid: string;
  readonly use: "sig";
  readonly alg: "EdDSA";
}

export interface SigningKey {
  readonly privateKey: KeyObject;
  readonly publicJwk: PublicJwk;
}

/** The published form of the public key `x`. */
async function publicJwk(x: string): Promise<PublicJwk> {
  const kid = await calculateJwkThumbprint({ kty: "OKP", crv: "Ed25519", x });
  return { kty: "OKP", crv: "Ed25519", x, kid, use: "sig", alg: "EdDSA" };
}

/** The key pair of a 32-byte Ed25519 private key. */
export async function signingKey(seed: Uint8Array): Promise<SigningKey> {
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8_ED25519, seed]), format: "der", type: "pkcs8" });
  const { x } = createPublicKey(privateKey).export({ format: "jwk" });
  if (x === undefined) throw new Error("an Ed25519 public key has an x coordinate");
  return { privateKey, publicJwk: await publicJwk(x) };
}

/** The keys to publish: the signing key, then its predecessors, each once. */
export async function publicKeys(current: PublicJwk, retired: readonly string[]): Promise<readonly PublicJwk[]> {
  const former = new Set(retired.filter((x) => x !== current.x));
  return [current, ...(await Promise.all([...former].map(publicJwk)))];
}
