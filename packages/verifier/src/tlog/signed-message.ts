import { Refusal } from "../refusal.ts";
import { concatBytes } from "./base64.ts";
import { parseCheckpoint } from "./checkpoint.ts";
import { NOTE_TYPE, type VerifierKey } from "./verifier-key.ts";

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
