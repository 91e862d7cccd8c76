import { fromBase64, toBase64 } from "../encodings.ts";
import { quote, Refusal } from "../refusal.ts";
import type { ParsedCheckpoint } from "./checkpoint.ts";
import { HASH_SIZE } from "./hash.ts";
import { type Policy, verifyCheckpoint, type Witnessed } from "./policy.ts";
import { verifyInclusion } from "./tree.ts";

const HEADER = "c2sp.org/tlog-proof@v1";
/** No tree of up to 2^53 entries needs more. */
const MAX_HASHES = 53;
const MAX_BYTES = 2_000_000;

/** A proof that an entry is in a log (C2SP tlog-proof): everything needed except the entry and the trusted keys. */
export interface LogProof {
  /** The index of the entry, from 0. */
  readonly index: number;
  /** From the entry's neighbor up to the root's child. */
  readonly hashes: readonly Uint8Array[];
  /** The signed checkpoint, including its cosignatures. */
  readonly checkpoint: string;
  /** Extra data, which is not signed. Our log puts the entry's bytes here. */
  readonly extra?: Uint8Array | undefined;
}

export function formatProof({ index, hashes, checkpoint, extra }: LogProof): string {
  const lines = [
    HEADER,
    ...(extra === undefined ? [] : [`extra ${toBase64(extra)}`]),
    `index ${index}`,
    ...hashes.map(toBase64),
  ];
  return `${lines.join("\n")}\n\n${checkpoint}`;
}

/** @throws Refusal `malformed_log_proof` for any form other than the one that `formatProof` writes */
export function parseProof(source: string | Uint8Array): LogProof {
  const text = typeof source === "string" ? source : decode(source);
  if (text.length > MAX_BYTES) throw malformed(`it is longer than ${MAX_BYTES} bytes`);
  const end = text.indexOf("\n\n");
  if (end === -1) throw malformed("no empty line separates it from its checkpoint");
  const [header = "", ...lines] = text.slice(0, end).split("\n");
  if (header !== HEADER) throw malformed(`it begins with ${quote(header)}, expected ${quote(HEADER)}`);
  const extra = lines[0]?.startsWith("extra ") ? parseExtra(lines.shift() ?? "") : undefined;
  const [, digits = ""] = /^index (0|[1-9]\d{0,15})$/.exec(lines.shift() ?? "") ?? [];
  if (digits === "" || !Number.isSafeInteger(Number(digits))) throw malformed("it names no index");
  if (lines.length > MAX_HASHES) throw malformed(`it has more than ${MAX_HASHES} hashes`);
  return { index: Number(digits), hashes: lines.map(parseHash), checkpoint: text.slice(end + 2), extra };
}

function parseExtra(line: string): Uint8Array {
  const bytes = fromBase64(line.slice("extra ".length));
  if (bytes === null || bytes.length === 0) throw malformed("its extra data is not base64");
  return bytes;
}

function parseHash(line: string): Uint8Array {
  const hash = fromBase64(line);
  if (hash?.length !== HASH_SIZE) throw malformed(`${quote(line)} is not a hash of 32 bytes in base64`);
  return hash;
}

/** The result of a valid proof. */
export interface Proven extends Witnessed {
  readonly index: number;
  readonly checkpoint: ParsedCheckpoint;
}

/**
 * Checks that an entry with this hash is in the log, at the proof's index, as the policy requires.
 * @throws Refusal with the failed check
 */
export async function verifyProof(
  { index, hashes, checkpoint: note }: LogProof,
  leaf: Uint8Array,
  policy: Policy,
): Promise<Proven> {
  const { checkpoint, ...witnessed } = await verifyCheckpoint(note, policy);
  verifyInclusion({ index, size: checkpoint.size, leaf, root: checkpoint.root, proof: hashes });
  return { index, checkpoint, ...witnessed };
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw malformed("it is not UTF-8 text");
  }
}

const malformed = (reason: string): Refusal =>
  new Refusal("malformed_log_proof", `the proof cannot be read: ${reason}`);
