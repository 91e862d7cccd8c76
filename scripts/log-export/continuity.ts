import { join } from "node:path";
import { openLog } from "../../packages/verifier/src/commands/log-files.ts";
import { Refusal } from "../../packages/verifier/src/refusal.ts";
import { parseCheckpoint } from "../../packages/verifier/src/tlog/checkpoint.ts";
import { verifyNote } from "../../packages/verifier/src/tlog/note.ts";
import type { ReadTiles } from "../../packages/verifier/src/tlog/tile.ts";
import { consistencyProof, verifyConsistency } from "../../packages/verifier/src/tlog/tree.ts";
import { parseVerifierKey } from "../../packages/verifier/src/tlog/verifier-key.ts";
import type { Folder } from "./folder.ts";
import { ExportRefusal } from "./refusal.ts";
import type { ReadTile, SignedTree } from "./signed-tree.ts";

/** A checkpoint with the log's signature. */
export interface Published extends SignedTree {
  readonly note: string;
}

/** @throws ExportRefusal if the log has not signed it */
export async function readCheckpoint(note: string | Uint8Array, vkey: string, what: string): Promise<Published> {
  const key = parseVerifierKey(vkey);
  try {
    const { text } = await verifyNote(note, [key]);
    const { origin, size, root } = parseCheckpoint(text);
    if (origin !== key.name) throw new Refusal("unknown_log", `it is of the log ${origin}`);
    return { size, root, note: Buffer.from(note).toString() };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new ExportRefusal(`${what} is not one of ${key.name} with the key ${vkey}: ${error.message}`);
  }
}

interface Continuity {
  /** In the folder; null before the first. */
  readonly before: Published | null;
  /** In the database; null while that log is empty. */
  readonly newest: Published | null;
  readonly hasEnded: boolean;
  readonly origin: string;
  readonly tileOf: ReadTile;
  readonly folder: Folder;
  /** Where the log is in the folder. */
  readonly at: string;
}

/**
 * Nothing, if the newest checkpoint continues the one in the folder. A log that has ended may have lost entries, which the
 * folder keeps: then its tree begins with the database's.
 * @throws ExportRefusal for a fork, and for a log in use that is shorter than the folder's
 */
export async function continues({ before, newest, hasEnded, ...parts }: Continuity): Promise<void> {
  if (before === null) return;
  const { origin, tileOf, folder, at } = parts;
  const size = newest?.size ?? 0;
  const fromStore: ReadTiles = (ids) => Promise.all(ids.map(tileOf));
  if (newest !== null) {
    const isLonger = size >= before.size;
    const [older, younger] = isLonger ? [before, newest] : [newest, before];
    await compare(older, younger, isLonger ? fromStore : openLog(join(folder.root, at)).tiles);
  }
  if (size < before.size && !hasEnded)
    throw new ExportRefusal(
      `The folder has ${before.size} entries of ${origin}, and the database has ${size}: ${before.size - size} entries are missing there, which readers may have seen. Nothing was written. docs/log.md says under "Recovery" how to go on; the folder has what is missing.`,
    );
}

async function compare(older: Published, younger: Published, read: ReadTiles): Promise<void> {
  const proof = await consistencyProof(older.size, younger.size, read);
  const [oldSize, newSize] = [older.size, younger.size];
  try {
    verifyConsistency({ oldSize, oldRoot: older.root, newSize, newRoot: younger.root, proof });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new ExportRefusal(
      `FORK: ${error.message}. Nothing was written; the log signed both\n${older.note}\nand\n${younger.note}`,
    );
  }
}
