import { sha256 } from "@noble/hashes/sha2.js";
import { base64url, type CryptoKey } from "jose";
import { concatBytes } from "./encodings.ts";
import { quote, Refusal } from "./refusal.ts";
import { isObject, type JsonObject, parseStrictJson } from "./strict-json.ts";

/** A detached JWS, split into its parts; only its form has been checked. */
export interface DetachedJws {
  readonly protected: string;
  readonly signature: Uint8Array<ArrayBuffer>;
}

const encoder = new TextEncoder();

/**
 * Splits `header..signature` (RFC 7515, appendix F). The header has exactly `alg` EdDSA and `kid`: no other algorithm
 * is tried, and no extension (`crit`, `b64`) is supported.
 * @throws Refusal
 */
export function readJws(jws: string, expectedKid: string): DetachedJws {
  const [header = "", payload, signature, ...more] = jws.split(".");
  if (payload === undefined || signature === undefined || more.length > 0)
    throw new Refusal("malformed_jws", "the jws is not a header and a signature separated by two dots");
  if (payload !== "") throw new Refusal("payload_not_detached", "the jws carries its own payload");
  checkHeader(header, expectedKid);
  const bytes = decode(signature);
  if (bytes?.length !== 64) throw new Refusal("malformed_jws", "the signature is not 64 bytes in base64url");
  return { protected: header, signature: bytes };
}

function checkHeader(text: string, expectedKid: string): void {
  const { alg, kid, crit, ...others } = readHeader(text);
  if (crit !== undefined) throw new Refusal("critical_header", `the jws requires extensions: crit is ${quote(crit)}`);
  if (alg !== "EdDSA")
    throw new Refusal("algorithm_not_allowed", `the jws has alg ${quote(alg)}; only EdDSA is allowed`);
  if (typeof kid !== "string") throw new Refusal("malformed_jws", "the jws header names no kid");
  const [strange] = Object.keys(others);
  if (strange !== undefined)
    throw new Refusal("malformed_jws", `the jws header has an unknown member ${quote(strange)}`);
  if (kid !== expectedKid) throw new Refusal("malformed_jws", "the jws and verificationMethod name different keys");
}

function readHeader(text: string): JsonObject {
  const bytes = decode(text);
  const header = bytes === null ? null : parseStrictJson(bytes);
  if (isObject(header ?? undefined)) return header as JsonObject;
  throw new Refusal("malformed_jws", "the jws header is not a base64url-encoded JSON object");
}

/** Base64url in its one canonical form: the spare bits of the last character are zero. */
const BASE64URL = /^(?:[\w-]{4})*(?:[\w-][AQgw]|[\w-]{2}[AEIMQUYcgkosw048])?$/;

/** Returns the bytes of canonical base64url, or null: other encodings of the same bytes are refused. */
const decode = (text: string): Uint8Array<ArrayBuffer> | null =>
  text !== "" && BASE64URL.test(text) ? (base64url.decode(text) as Uint8Array<ArrayBuffer>) : null;

/**
 * Returns whether the JWS signs the RFC 8785 form of a document: Ed25519 over `header.payload` (RFC 7515, section 5.2,
 * and RFC 8037).
 */
export function jwsHolds(jws: DetachedJws, canonical: Uint8Array, key: CryptoKey): Promise<boolean> {
  const input = encoder.encode(`${jws.protected}.${base64url.encode(canonical)}`);
  return crypto.subtle.verify("Ed25519", key, jws.signature, input);
}

interface SignedOptions {
  /** The RFC 8785 form of the proof without `proofValue`. */
  readonly canonicalOptions: string;
  /** The 64 bytes of the signature. */
  readonly proofValue: Uint8Array<ArrayBuffer>;
}

/**
 * Returns whether a W3C `eddsa-jcs-2022` proof value signs the SHA-256 of the canonical proof options followed by the
 * SHA-256 of the RFC 8785 form of the document.
 */
export function proofValueHolds(
  { canonicalOptions, proofValue }: SignedOptions,
  canonical: Uint8Array,
  key: CryptoKey,
): Promise<boolean> {
  const data = concatBytes(sha256(encoder.encode(canonicalOptions)), sha256(canonical));
  return crypto.subtle.verify("Ed25519", key, proofValue, data);
}
