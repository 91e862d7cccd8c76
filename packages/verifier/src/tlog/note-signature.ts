import type { CryptoKey } from "jose";
import { concatBytes } from "../encodings.ts";
import { quote, Refusal } from "../refusal.ts";
import { parseCheckpoint } from "./checkpoint.ts";
import { NOTE_TYPE, type NoteType, type VerifierKey } from "./verifier-key.ts";

/** The size of the timestamp before the signature itself, in bytes. */
const TIME_SIZE: Readonly<Record<NoteType, number>> = { 1: 0, 4: 8, 6: 8 };
const SIGNATURE_SIZE: Readonly<Record<NoteType, number>> = { 1: 64, 4: 64, 6: 2420 };

/**
 * Checks one signature of a note with the key that it names.
 * @returns the POSIX time of a cosignature in seconds; null for a log's own signature
 * @throws Refusal `note_signature_mismatch`; `unsupported_signature_type` if the runtime has no ML-DSA-44
 */
export async function checkNoteSignature(
  key: VerifierKey,
  text: string,
  signature: Uint8Array,
): Promise<number | null> {
  const timed = TIME_SIZE[key.type];
  if (signature.length !== timed + SIGNATURE_SIZE[key.type])
    throw mismatch(key, `has ${signature.length} bytes, expected ${timed + SIGNATURE_SIZE[key.type]}`);
  const seconds = timed === 0 ? 0 : timeOf(key, signature);
  const message = signedMessage(key, text, seconds);
  if (!(await holds(key, signature.slice(timed), message))) throw mismatch(key, "does not verify");
  return timed === 0 ? null : seconds;
}

/** The last second that a Date can represent. */
const LAST_SECOND = 8_640_000_000_000;

function timeOf(key: VerifierKey, signature: Uint8Array): number {
  const seconds = Number(new DataView(signature.buffer, signature.byteOffset).getBigUint64(0));
  if (seconds <= LAST_SECOND) return seconds;
  throw mismatch(key, "has an invalid time");
}

async function holds(
  { type, name, publicKey }: VerifierKey,
  signature: Uint8Array<ArrayBuffer>,
  message: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const { subtle } = globalThis.crypto;
  const raw = Uint8Array.from(publicKey);
  if (type !== NOTE_TYPE.mlDsa44) {
    const key = await subtle.importKey("raw", raw, "Ed25519", false, ["verify"]);
    return subtle.verify("Ed25519", key, signature, message);
  }
  const key = await importMlDsa(raw).catch((cause: Error) => {
    const reason = `this runtime cannot check the ML-DSA-44 key of ${quote(name)} (Node 24.8 and newer can)`;
    throw Object.assign(new Refusal("unsupported_signature_type", reason), { cause });
  });
  return subtle.verify("ML-DSA-44", key, signature, message);
}

/** Web Cryptography's `raw-public`, which the types do not include yet. */
const importMlDsa = (raw: Uint8Array<ArrayBuffer>): Promise<CryptoKey> =>
  globalThis.crypto.subtle.importKey("raw-public" as "raw", raw, "ML-DSA-44", false, ["verify"]);

const mismatch = ({ name, id }: VerifierKey, reason: string): Refusal =>
  new Refusal("note_signature_mismatch", `the signature of ${quote(name)} (key ${id}) ${reason}`);

const encoder = new TextEncoder();

/**
 * Returns the bytes that a key signs for the text of a note. A log's key signs the text itself; a cosigner's key signs
 * a checkpoint at a time (C2SP tlog-cosignature).
 * @param seconds POSIX time of a cosignature; 0 for a log's own signature
 * @throws Refusal `malformed_checkpoint` if a cosigner's text is not a checkpoint
 */
export function signedMessage({ name, type }: VerifierKey, text: string, seconds: number): Uint8Array<ArrayBuffer> {
  if (type === NOTE_TYPE.ed25519) return encoder.encode(text);
  const { origin, size, root } = parseCheckpoint(text);
  if (type === NOTE_TYPE.cosignature) return encoder.encode(`cosignature/v1\ntime ${seconds}\n${text}`);
  return concatBytes(
    encoder.encode("subtree/v1\n\0"),
    shortText(name),
    uint64(seconds),
    shortText(origin),
    uint64(0),
    uint64(size),
    root,
  );
}

/** Returns text of at most 255 bytes, after its length in one byte. */
function shortText(text: string): Uint8Array {
  const bytes = encoder.encode(text);
  if (bytes.length > 255) throw new Refusal("malformed_checkpoint", "a name or an origin has more than 255 bytes");
  return concatBytes(Uint8Array.of(bytes.length), bytes);
}

/** Returns a safe integer as eight bytes, big-endian. */
export function uint64(value: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(value));
  return bytes;
}
