import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { calculateJwkThumbprint } from "jose";
import { z } from "zod";

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

/** Returns the published form of the public key `x`. */
async function publicJwk(x: string): Promise<PublicJwk> {
  const kid = await calculateJwkThumbprint({ kty: "OKP", crv: "Ed25519", x });
  return { kty: "OKP", crv: "Ed25519", x, kid, use: "sig", alg: "EdDSA" };
}

/** Returns the key pair of a 32-byte Ed25519 private key. */
export async function signingKey(seed: Uint8Array): Promise<SigningKey> {
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8_ED25519, seed]), format: "der", type: "pkcs8" });
  const { x } = createPublicKey(privateKey).export({ format: "jwk" });
  if (x === undefined) throw new Error("an Ed25519 public key has an x coordinate");
  return { privateKey, publicJwk: await publicJwk(x) };
}

/** Returns the keys to publish: the signing key, then its predecessors, each once. */
export async function publicKeys(current: PublicJwk, retired: readonly string[]): Promise<readonly PublicJwk[]> {
  const former = new Set(retired.filter((x) => x !== current.x));
  return [current, ...(await Promise.all([...former].map(publicJwk)))];
}

const P = 2n ** 255n - 19n;
/** The curve's constant: -121665/121666 (RFC 8032, section 5.1). */
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;

const JWK = z.object({ kty: z.literal("OKP"), crv: z.literal("Ed25519"), x: z.string() });

export interface RetiredKeys {
  /** The `x` of every key, in the given order. */
  readonly keys: readonly string[];
  /** One sentence for each value that is not a public key; it never repeats the value. */
  readonly problems: readonly string[];
}

/**
 * Parses public keys that signed in the past: comma-separated `x` values or whole public JWKs. A private key looks like
 * an `x` value and would be published, so a JWK with `d` and any text that is not a point of the curve (half of all
 * private keys) are rejected.
 */
export function parseRetiredKeys(text: string): RetiredKeys {
  const values = text.split(/,(?![^{}]*\})/).map((value) => value.trim());
  const parsed = values.map((value, index) => parseKey(value, `value ${index + 1}`));
  return {
    keys: parsed.flatMap((key) => ("x" in key ? [key.x] : [])),
    problems: parsed.flatMap((key) => ("problem" in key ? [key.problem] : [])),
  };
}

type ParsedKey = { readonly x: string } | { readonly problem: string };

function parseKey(value: string, name: string): ParsedKey {
  if (!value.startsWith("{")) return checkPoint(value, name);
  const jwk = parseJson(value);
  if (typeof jwk === "object" && jwk !== null && "d" in jwk)
    return { problem: `${name} holds a private key: remove its member d` };
  const { success, data } = JWK.safeParse(jwk);
  if (!success)
    return { problem: `${name} is not a JWK of a public Ed25519 key: expected kty OKP, crv Ed25519, and x` };
  return checkPoint(data.x, name);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function checkPoint(x: string, name: string): ParsedKey {
  const bytes = Buffer.from(x, "base64url");
  if (bytes.length !== 32 || bytes.toString("base64url") !== x)
    return {
      problem: `${name} is not a public key: expected x of an Ed25519 key (32 bytes as 43 base64url characters) or a JWK`,
    };
  return isPoint(bytes)
    ? { x }
    : {
        problem: `${name} is not a point on the Ed25519 curve: expected x from /.well-known/jwks.json, never a SIGNING_KEY`,
      };
}

/** Whether 32 bytes encode a point: (y² - 1) / (d·y² + 1) must be a square (RFC 8032, section 5.1.3). */
function isPoint(bytes: Uint8Array): boolean {
  const y = bytes.reduceRight((number, byte) => number * 256n + BigInt(byte), 0n) & (2n ** 255n - 1n);
  if (y >= P) return false;
  const square = (y * y) % P;
  return power(((square - 1n + P) * (D * square + 1n)) % P, (P - 1n) / 2n) !== P - 1n;
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let [factor, rest] = [base, exponent]; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * factor) % P;
    factor = (factor * factor) % P;
  }
  return result;
}

const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** The number of digits that fit a safe integer, which keeps divisions of large numbers few. */
const CHUNK = 9;
const CHUNK_BASE = 58n ** BigInt(CHUNK);

/**
 * Encodes bytes as multibase text in base58btc, which begins with `z`: the form of `proofValue` and
 * `publicKeyMultibase`.
 */
export function multibase(bytes: Uint8Array): string {
  let digits = "";
  for (let rest = BigInt(`0x0${Buffer.from(bytes).toString("hex")}`); rest > 0n; rest /= CHUNK_BASE) {
    let chunk = Number(rest % CHUNK_BASE);
    for (let n = 0; n < CHUNK; n++, chunk = Math.floor(chunk / 58)) digits = ALPHABET[chunk % 58] + digits;
  }
  const leadingZeros = bytes.findIndex((byte) => byte !== 0);
  return `z${"1".repeat(leadingZeros === -1 ? bytes.length : leadingZeros)}${digits.replace(/^1+/, "")}`;
}
