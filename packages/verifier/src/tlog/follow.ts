import { InputError, quote, Refusal } from "../refusal.ts";
import type { JsonObject } from "../strict-json.ts";
import { type Expectation, verifyDocument } from "../verify-document.ts";
import type { ParsedCheckpoint } from "./checkpoint.ts";
import { type AnyEntry, documentSha256, parseAnyEntry, publishedDocument } from "./entry.ts";
import { type Edge, growTiles } from "./grow.ts";
import { EMPTY_ROOT, HASH_SIZE, leafHash, sameBytes } from "./hash.ts";
import { type Policy, verifyCheckpoint } from "./policy.ts";
import { type ReadTiles, TILE_WIDTH, tileWidth } from "./tile.ts";
import { consistencyProof, verifyConsistency } from "./tree.ts";

/** The part of a log that has been checked. */
export interface CheckedLog {
  /** Empty before the first checkpoint. */
  readonly origin: string;
  readonly size: number;
  readonly root: Uint8Array;
  /**
   * A signed checkpoint whose tree begins with this one; together with a conflicting checkpoint, it is the evidence of
   * a fork.
   */
  readonly note: string;
  /** The right edge of the tree, which shows that the tree only grows, whatever tiles are served. */
  readonly edge: Edge;
}

export const START: CheckedLog = { origin: "", size: 0, root: EMPTY_ROOT, note: "", edge: new Map() };

/** The log reports that it does not have a file, as opposed to not responding. */
export class AbsentError extends InputError {}

export interface Following {
  readonly log: {
    checkpoint(): Promise<Uint8Array>;
    readonly tiles: ReadTiles;
    entries(n: number, width: number): Promise<readonly Uint8Array[]>;
  };
  readonly policy: Policy;
  /** The expected signer of the documents in the entries. */
  readonly expected: Expectation;
  /** Reads a document that is too large for the log. */
  readonly fetchDocument: (url: string) => Promise<Uint8Array>;
  /**
   * Called for each genuine entry, also of an unknown type. Whether it is in the tree is only certain once `follow`
   * returns.
   */
  readonly seen?: (entry: AnyEntry, document: JsonObject) => void;
  /** The maximum number of bundles of 256 entries to check now, if fewer than usual. */
  readonly mostBundles?: number;
}

export interface Followed {
  readonly place: CheckedLog;
  /** The number of entries of the newest checkpoint that remain to be checked. */
  readonly ahead: number;
}

/** Bundles per call, so that a log of any size can be followed with breaks in between. */
const MOST_BUNDLES = 32;

/**
 * Checks up to 8,192 entries of a log, from a place toward its newest checkpoint: the tree there begins with the one
 * before, it consists of exactly the entries that are served, and each of them is genuine.
 * @returns the new place; the same one if the log has not grown
 * @throws Refusal that states the fault and, for a fork, both checkpoints; InputError if the log cannot be read
 */
export async function follow(place: CheckedLog, following: Following): Promise<Followed> {
  const { log, policy } = following;
  const note = new TextDecoder().decode(await log.checkpoint());
  const checkpoint = await readHead(note, policy);
  if (place.origin !== "" && checkpoint.origin !== place.origin)
    throw new InputError(`this is the log ${quote(checkpoint.origin)}; the state is for ${quote(place.origin)}`);
  // A checkpoint that is not newer may come from a cache, in which case it is the beginning of the same tree.
  const isOlder = checkpoint.size <= place.size && place.origin !== "";
  const [older, newer] = isOlder ? [checkpoint, place] : [place, checkpoint];
  await checkExtension(older, newer, log.tiles).catch((error: unknown) => {
    if (error instanceof Refusal) throw fork(error.message, { place, note });
    // A truncated log no longer has the tiles of its removed entries.
    if (!isOlder || !(error instanceof AbsentError)) throw error;
    throw fork(`the log had ${place.size} entries and has ${checkpoint.size}: ${error.message}`, { place, note });
  });
  if (isOlder) return { place, ahead: 0 };
  let { edge, root } = place;
  const { origin } = checkpoint;
  const bundles = Math.min(MOST_BUNDLES, following.mostBundles ?? MOST_BUNDLES);
  const last = (Math.floor(place.size / TILE_WIDTH) + bundles) * TILE_WIDTH;
  const size = Math.min(checkpoint.size, last);
  for (let at = place.size; at < size; ) {
    const n = Math.floor(at / TILE_WIDTH);
    const width = tileWidth(checkpoint.size, 0, n);
    const entries = await log.entries(n, width);
    const leaves = entries.map(leafHash);
    await compareWithTile(leaves, { n, width, tiles: log.tiles, known: edge.get(0) });
    const fresh = leaves.slice(at - n * TILE_WIDTH);
    for (const entry of entries.slice(at - n * TILE_WIDTH)) await checkEntry(entry, at++, following);
    ({ edge, root } = growTiles({ size: at - fresh.length, edge, leaves: fresh }));
  }
  await checkExtension({ size, root }, checkpoint, log.tiles).catch((error: unknown) => {
    if (!(error instanceof Refusal)) throw error;
    const reason = "the served entries and tiles do not produce the root of";
    throw new Refusal("inclusion_mismatch", `${reason}\n${note}`);
  });
  return { place: { origin, size, root, note, edge }, ahead: checkpoint.size - size };
}

/**
 * Text that is not a checkpoint did not come from the log (it may be a captive portal or a wrong address), so it is no
 * evidence.
 */
async function readHead(note: string, policy: Policy): Promise<ParsedCheckpoint> {
  try {
    return (await verifyCheckpoint(note, policy)).checkpoint;
  } catch (error) {
    if (!(error instanceof Refusal && ["malformed_note", "malformed_checkpoint"].includes(error.code))) throw error;
    throw new InputError(`the log's address does not serve a checkpoint: ${error.message}`, { cause: error });
  }
}

type Head = Pick<CheckedLog, "size" | "root">;

/** @throws Refusal unless the tiles show that the older tree is the beginning of the newer one */
async function checkExtension(older: Head, newer: Head, tiles: ReadTiles): Promise<void> {
  const proof = await consistencyProof(older.size, newer.size, tiles);
  verifyConsistency({ oldSize: older.size, oldRoot: older.root, newSize: newer.size, newRoot: newer.root, proof });
}

/** Names both checkpoints: signed by the same log, they are the evidence. */
const fork = (reason: string, { place, note }: { readonly place: CheckedLog; readonly note: string }): Refusal =>
  new Refusal("consistency_mismatch", `FORK: ${reason}; the log signed\n${place.note}\nand\n${note}`);

/** Reports an entry that differs from its tile, or from the entry that was checked before. */
async function compareWithTile(
  leaves: readonly Uint8Array[],
  { n, width, tiles, known }: { n: number; width: number; tiles: ReadTiles; known: Uint8Array | undefined },
): Promise<void> {
  const [tile = new Uint8Array()] = await tiles([{ level: 0, n, width }]);
  for (const [at, leaf] of leaves.entries()) {
    const place = at * HASH_SIZE;
    const index = n * TILE_WIDTH + at;
    const before = known?.subarray(place, place + HASH_SIZE);
    if (before !== undefined && before.length > 0 && !sameBytes(before, leaf))
      throw new Refusal("entry_mismatch", `entry ${index} was rewritten since it was checked`);
    if (!sameBytes(tile.subarray(place, place + HASH_SIZE), leaf))
      throw new Refusal("entry_mismatch", `entry ${index} is not the one whose hash is in the tree`);
  }
}

async function checkEntry(bytes: Uint8Array, index: number, following: Following): Promise<void> {
  try {
    const entry = parseAnyEntry(bytes);
    if (entry.index !== index) throw new Refusal("entry_mismatch", `the entry names the index ${entry.index}`);
    following.seen?.(entry, await signedDocument(entry, following));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new Refusal(error.code, `entry ${index}: ${error.message}`);
  }
}

async function signedDocument(
  { type, content }: AnyEntry,
  { expected, fetchDocument }: Following,
): Promise<JsonObject> {
  const text =
    "document" in content
      ? JSON.stringify(content.document)
      : publishedDocument(type, await fetchDocument(content.url));
  const { signature, document } = await verifyDocument(text, expected);
  if (!signature.valid || document === null)
    throw new Refusal(signature.valid ? "malformed_document" : signature.code, signature.valid ? "" : signature.reason);
  if ("sha256" in content && documentSha256(document) !== content.sha256)
    throw new Refusal("entry_mismatch", `${quote(content.url)} has a different sha256 from the logged one`);
  return document;
}
