import { fromBase64, toBase64 } from "../encodings.ts";
import { quote, Refusal } from "../refusal.ts";
import { EMPTY_ROOT, HASH_SIZE, sameBytes } from "./hash.ts";

/** The head of a log's tree (C2SP tlog-checkpoint). */
export interface Checkpoint {
  readonly origin: string;
  /** The number of entries in the tree. */
  readonly size: number;
  readonly root: Uint8Array;
}

export interface ParsedCheckpoint extends Checkpoint {
  /** Lines after the root, whose meaning is up to the log. */
  readonly extensions: readonly string[];
}

/** Returns the text of the checkpoint's note. */
export const formatCheckpoint = ({ origin, size, root }: Checkpoint): string =>
  `${origin}\n${size}\n${toBase64(root)}\n`;

/** Parses the text of a checkpoint's note, without signatures. @throws Refusal `malformed_checkpoint` */
export function parseCheckpoint(text: string): ParsedCheckpoint {
  const refuse = (reason: string): never => {
    throw new Refusal("malformed_checkpoint", reason);
  };
  const lines = text.split("\n");
  if (lines.pop() !== "") refuse("the checkpoint does not end with a newline");
  if (lines.some((line) => line === "")) refuse("the checkpoint has an empty line");
  const [origin = "", digits = "", encoded = "", ...extensions] = lines;
  if (lines.length < 3) refuse(`the checkpoint has ${lines.length} lines: expected origin, size and root`);
  const size = Number(digits);
  if (!/^(0|[1-9]\d{0,15})$/.test(digits) || !Number.isSafeInteger(size))
    refuse(`the tree size ${quote(digits)} is not a whole number below 2^53 without leading zeros`);
  const root = fromBase64(encoded);
  if (root?.length !== HASH_SIZE) return refuse(`the root ${quote(encoded)} is not 32 bytes in base64`);
  if (size === 0 && !sameBytes(root, EMPTY_ROOT)) refuse("the root of an empty tree is not SHA-256 of nothing");
  return { origin, size, root, extensions };
}
