import { bytesToHex, hexToBytes } from "@noble/hashes/utils.js";
import { concatBytes, fromBase64, toBase64 } from "../encodings.ts";
import { quote, Refusal } from "../refusal.ts";
import { checkNoteSignature, signedMessage, uint64 } from "./note-signature.ts";
import { isKeyName, NOTE_TYPE, type VerifierKey } from "./verifier-key.ts";

/** A larger note is refused before it is parsed. Sixteen ML-DSA-44 signatures take 60,000 bytes. */
const MAX_NOTE_BYTES = 1_000_000;
const MAX_SIGNATURES = 100;

export interface NoteSignature {
  /** The signer's name, as claimed. */
  readonly name: string;
  /** The key ID, in 8 hex digits. */
  readonly id: string;
  /** The bytes after the key ID; a cosignature's begin with its time. */
  readonly signature: Uint8Array;
  /** The whole line, with its newline. */
  readonly line: string;
}

/** A note whose form has been checked, but none of its signatures (C2SP signed-note). */
export interface ParsedNote {
  /** The signed text, including its last newline. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

export interface VerifiedSignature extends NoteSignature {
  readonly key: VerifierKey;
  /** The POSIX time of a cosignature in seconds; null for a log's own signature. */
  readonly seconds: number | null;
}

export interface VerifiedNote {
  readonly text: string;
  /** Signatures by known keys, all verified. */
  readonly signatures: readonly VerifiedSignature[];
  /** Signatures by unknown keys, which cannot be checked. */
  readonly unknown: readonly NoteSignature[];
}

export interface NoteSigner {
  readonly key: VerifierKey;
  /** Returns the bare signature of these bytes: 64 bytes for Ed25519. */
  sign(message: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

/** Returns a signed note. The signers' keys are of type Ed25519; `cosign` writes cosignatures. */
export async function signNote(text: string, ...signers: readonly NoteSigner[]): Promise<string> {
  if (!text.endsWith("\n")) throw new Refusal("malformed_note", "the text of a note must end with a newline");
  const lines = signers.map(async ({ key, sign }) => {
    if (key.type !== NOTE_TYPE.ed25519) throw new Error(`the key of ${key.name} is a cosigner's`);
    return signatureLine(key, await sign(signedMessage(key, text, 0)));
  });
  return `${text}\n${(await Promise.all(lines)).join("")}`;
}

/**
 * Returns a cosigner's signature line for the text of a checkpoint (C2SP tlog-cosignature): at this time, it is the
 * largest tree of this log that the cosigner has seen, and consistent with all earlier ones.
 * @param seconds POSIX time
 * @returns the line with its newline, to be appended after the log's own
 * @throws Refusal `malformed_checkpoint`
 */
export async function cosign(text: string, { key, sign }: NoteSigner, seconds: number): Promise<string> {
  if (key.type === NOTE_TYPE.ed25519) throw new Error(`the key of ${key.name} is a log's, not a cosigner's`);
  return signatureLine(key, concatBytes(uint64(seconds), await sign(signedMessage(key, text, seconds))));
}

/** Returns one signature line of a note, with its newline. */
const signatureLine = ({ name, id }: VerifierKey, signature: Uint8Array): string =>
  `\u2014 ${name} ${toBase64(concatBytes(hexToBytes(id), signature))}\n`;

/** @throws Refusal `malformed_note` */
export function parseNote(source: string | Uint8Array): ParsedNote {
  const note = typeof source === "string" ? source : decode(source);
  if (note.length > MAX_NOTE_BYTES) throw malformed(`it is longer than ${MAX_NOTE_BYTES} bytes`);
  if (!note.isWellFormed()) throw malformed("it is not Unicode text");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are refused
  if (/[\u0000-\u0009\u000b-\u001f]/.test(note)) throw malformed("it has a control character");
  const split = note.lastIndexOf("\n\n");
  if (split === -1) throw malformed("no empty line separates its text from its signatures");
  const signatures = parseSignatures(note.slice(split + 2));
  if (signatures.length === 0) throw malformed("it has no signature");
  return { text: note.slice(0, split + 1), signatures };
}

/** Parses signature lines without a note, as a witness returns them. @throws Refusal `malformed_note` */
export function parseSignatures(text: string): readonly NoteSignature[] {
  const lines = text.split("\n");
  if (lines.pop() !== "") throw malformed("its last signature does not end with a newline");
  if (lines.length > MAX_SIGNATURES) throw malformed(`it has more than ${MAX_SIGNATURES} signatures`);
  return lines.map(parseSignature);
}

function parseSignature(line: string): NoteSignature {
  const [, name = "", encoded = ""] = /^\u2014 ([^ ]+) ([A-Za-z0-9+/]+=*)$/.exec(line) ?? [];
  const bytes = fromBase64(encoded);
  if (!isKeyName(name) || bytes === null || bytes.length < 5)
    throw malformed(`${quote(line)} is not a signature: a dash, a name, and a key ID with a signature in base64`);
  return { name, id: bytesToHex(bytes.subarray(0, 4)), signature: bytes.subarray(4), line: `${line}\n` };
}

/**
 * Checks every signature of a note by a known key.
 * @throws Refusal `malformed_note`; `note_signature_mismatch` if one is invalid; `note_not_signed` if there is none
 */
export async function verifyNote(source: string | Uint8Array, keys: readonly VerifierKey[]): Promise<VerifiedNote> {
  const { text, signatures } = parseNote(source);
  const found = await verifySignatures(text, signatures, keys);
  if (found.signatures.length === 0)
    throw new Refusal(
      "note_not_signed",
      `the note is not signed by any of ${keys.map(({ name }) => quote(name)).join(", ")}`,
    );
  return { text, ...found };
}

/** Checks signature lines that are separate from their text; none of them has to be by a known key. */
export async function verifySignatures(
  text: string,
  lines: readonly NoteSignature[],
  keys: readonly VerifierKey[],
): Promise<Omit<VerifiedNote, "text">> {
  const known = new Map(keys.map((key) => [`${key.name}+${key.id}`, key]));
  if (known.size < new Set(keys.map(({ vkey }) => vkey)).size)
    throw new Refusal("malformed_vkey", "two different keys have the same name and key ID");
  const signatures: VerifiedSignature[] = [];
  const unknown: NoteSignature[] = [];
  for (const line of lines) {
    const key = known.get(`${line.name}+${line.id}`);
    if (key === undefined) unknown.push(line);
    else signatures.push({ ...line, key, seconds: await checkNoteSignature(key, text, line.signature) });
  }
  return { signatures, unknown };
}

function decode(bytes: Uint8Array): string {
  if (bytes.length > MAX_NOTE_BYTES) throw malformed(`it is longer than ${MAX_NOTE_BYTES} bytes`);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw malformed("it is not UTF-8 text");
  }
}

const malformed = (reason: string): Refusal => new Refusal("malformed_note", `the note cannot be read: ${reason}`);
