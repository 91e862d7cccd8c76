import { createHash, type KeyObject, sign } from "node:crypto";
import { promisify } from "node:util";
import canonicalize from "canonicalize";
import { multibase } from "./multibase.ts";

/** The RFC 8785 form of a value that JSON can write. */
export function jcs(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new Error("only a JSON value has a canonical form");
  return text;
}

const signAside = promisify<null, Buffer, KeyObject, Buffer>(sign);

const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();

/**
 * What `eddsa-jcs-2022` signs: the digest of the proof's options, then the digest of the document without its proof.
 */
export const hashData = (options: object, canonicalDocument: string): Buffer =>
  Buffer.concat([sha256(jcs(options)), sha256(canonicalDocument)]);

/**
 * The `proofValue` of W3C Data Integrity EdDSA Cryptosuites 1.0, section 3.3 (eddsa-jcs-2022).
 * @param options the proof without `proofValue`
 * @param canonicalDocument the JCS form of the document without `proof`
 */
export const proofValue = async (options: object, canonicalDocument: string, key: KeyObject): Promise<string> =>
  multibase(await signAside(null, hashData(options, canonicalDocument), key));
