import { bytesToHex } from "@noble/hashes/utils.js";
import { concatBytes, fromBase64, toBase64 } from "../encodings.ts";
import { quote, Refusal } from "../refusal.ts";
import { sha256 } from "./hash.ts";

/** The supported signature types of C2SP signed-note, by purpose. */
export const NOTE_TYPE = { ed25519: 0x01, cosignature: 0x04, mlDsa44: 0x06 } as const;
export type NoteType = (typeof NOTE_TYPE)[keyof typeof NOTE_TYPE];

/** The size of each type's public key, in bytes. */
const KEY_SIZE: Readonly<Record<NoteType, number>> = { 1: 32, 4: 32, 6: 1312 };

/** A key for signed notes: the contents of a `vkey`. */
export interface VerifierKey {
  /** A log's origin or a witness's name. */
  readonly name: string;
  /** The key ID: 8 lowercase hex digits. */
  readonly id: string;
  readonly type: NoteType;
  readonly publicKey: Uint8Array;
  /** The key as text: `name+id+base64`. */
  readonly vkey: string;
}

/** Returns whether a name is free of white space of any script, plus signs, and control characters. */
export const isKeyName = (name: string): boolean => name.isWellFormed() && /^[^\s\u0085+\p{Cc}]+$/u.test(name);

/**
 * Returns the key ID as C2SP signed-note recommends it: 8 hex digits of SHA-256 over name, newline, type, and public
 * key.
 */
const keyId = (name: string, type: NoteType, publicKey: Uint8Array): string =>
  bytesToHex(sha256(concatBytes(new TextEncoder().encode(`${name}\n`), Uint8Array.of(type), publicKey)).subarray(0, 4));

/** @throws Refusal `malformed_vkey` for an invalid name or key length */
export function verifierKey(name: string, type: NoteType, publicKey: Uint8Array): VerifierKey {
  if (!isKeyName(name)) throw new Refusal("malformed_vkey", `${quote(name)} is not a key name: no spaces and no plus`);
  if (publicKey.length !== KEY_SIZE[type])
    throw new Refusal("malformed_vkey", `a key of this type has ${KEY_SIZE[type]} bytes, not ${publicKey.length}`);
  const id = keyId(name, type, publicKey);
  return { name, id, type, publicKey, vkey: `${name}+${id}+${toBase64(concatBytes(Uint8Array.of(type), publicKey))}` };
}

/**
 * Parses a vkey, such as `example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k`.
 * @throws Refusal `malformed_vkey`, or `unsupported_signature_type` for an unsupported type
 */
export function parseVerifierKey(vkey: string): VerifierKey {
  const [, name = "", id = "", encoded = ""] = /^([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)$/.exec(vkey) ?? [];
  const bytes = fromBase64(encoded);
  if (name === "" || bytes === null)
    throw new Refusal("malformed_vkey", `${quote(vkey)} is not a vkey: name+keyid+base64`);
  const type = bytes[0];
  if (type === undefined || !isNoteType(type))
    throw new Refusal(
      "unsupported_signature_type",
      `the vkey of ${quote(name)} has signature type ${type}, not 1, 4, or 6`,
    );
  const key = verifierKey(name, type, bytes.subarray(1));
  if (key.id !== id) throw new Refusal("malformed_vkey", `the key ID of ${quote(name)} is ${key.id}, not ${id}`);
  return key;
}

const isNoteType = (type: number): type is NoteType => Object.values<number>(NOTE_TYPE).includes(type);
