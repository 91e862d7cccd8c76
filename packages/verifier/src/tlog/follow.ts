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

/** How far a log has been checked. */
export interface CheckedLog {
  /** Empty before the first checkpoint. */
  readonly origin: string;
  readonly size: number;
  readonly root: Uint8Array;
  /** A signed checkpoint whose tree begins with this one; with another of the log's it is the evidence of a fork. */
  readonly note: string;
  /** The right edge of the tree: it shows that the tree only grows, whatever tiles are served. */
  readonly edge: Edge;
}

export const START: CheckedLog = { origin: "", size: 0, root: EMPTY_ROOT, note: "", edge: new Map() };

/** The log does not have a file, which is more than that nobody answers. */
export class AbsentError extends InputError {}

export interface Following {
  readonly log: {
    checkpoint(): Promise<Uint8Array>;
    readonly tiles: ReadTiles;
    entries(n: number, width: number): Promise<readonly Uint8Array[]>;
  };
  readonly policy: Policy;
  /** Whose documents the entries hold. */
  readonly expected: Expectation;
  /** Reads a document that is too large for the log. */
  readonly fetchDocument: (url: string) => Promise<Uint8Array>;
  /**
   * Is told of each entry that is genuine, also of those whose type is not known here. Whether it is in the tree shows when
   * `follow` returns.
   */
  readonly seen?: (entry: AnyEntry, document: JsonObject) => void;
  /** Bundles of 256 entries to check now, if fewer than usual. */
  readonly mostBundles?: number;
}

export interface Followed {
  readonly place: CheckedLog;
  /** Entries of the newest checkpoint after this place, to be checked next. */
  readonly ahead: number;
}

/** Bundles that are checked at once, so that a log of any size can be followed with breaks in between. */
const MOST_BUNDLES = 32;

/**
 * Checks a log from a place toward its newest checkpoint, at most 8,192 entries: that the tree there begins with the one
 * before, that it is made of exactly the entries that are served, and that each of them is genuine.
 * @returns the new place; the same one if nothing is new
 * @throws Refusal that says what is wrong and, for a fork, both checkpoints; InputError if the log cannot be read
 */
export async function follow(place: CheckedLog, following: Following): Promise<Followed> {
  const { log, policy } = following;
  const note = new TextDecoder().decode(await log.checkpoint());
  const checkpoint = await readHead(note, policy);
  if (place.origin !== "" && checkpoint.origin !== place.origin)
    throw new InputError(`this is the log ${quote(checkpoint.origin)}; the state is of ${quote(place.origin)}`);
  if (checkpoint.size <= place.size && place.origin !== "") {
    await checkOlder(checkpoint, { place, note, tiles: log.tiles });
    return { place, ahead: 0 };
  }
  await checkGrowth(checkpoint, { place, note, tiles: log.tiles });
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
  await checkMade({ size, root }, { checkpoint, note, tiles: log.tiles });
  return { place: { origin, size, root, note, edge }, ahead: checkpoint.size - size };
}

/** What is no checkpoint is not by the log, so it shows nothing of it: the page of a network's login, or of a wrong address. */
async function readHead(note: string, policy: Policy): Promise<ParsedCheckpoint> {
  try {
    return (await verifyCheckpoint(note, policy)).checkpoint;
  } catch (error) {
    if (!(error instanceof Refusal && ["malformed_note", "malformed_checkpoint"].includes(error.code))) throw error;
    throw new InputError(`the log has something else in place of its checkpoint: ${error.message}`, { cause: error });
  }
}

/** That the tree of the entries which were served is the beginning of the signed one. */
async function checkMade(
  made: Pick<CheckedLog, "size" | "root">,
  { checkpoint, note, tiles }: Pick<Compared, "note" | "tiles"> & { readonly checkpoint: ParsedCheckpoint },
): Promise<void> {
  const proof = await consistencyProof(made.size, checkpoint.size, tiles);
  try {
    const { size: newSize, root: newRoot } = checkpoint;
    verifyConsistency({ oldSize: made.size, oldRoot: made.root, newSize, newRoot, proof });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const reason = "the entries and tiles that are served do not make the root of";
    throw new Refusal("inclusion_mismatch", `${reason}\n${note}`);
  }
}

interface Compared {
  readonly place: CheckedLog;
  readonly note: string;
  readonly tiles: ReadTiles;
}

/**
 * A checkpoint that is not newer may come from a cache: then it is of the beginning of the same tree. A log that was cut has
 * no tiles to show it.
 */
async function checkOlder({ size, root }: ParsedCheckpoint, { place, note, tiles }: Compared): Promise<void> {
  const proof = await consistencyProof(size, place.size, tiles).catch((error: unknown) => {
    if (!(error instanceof AbsentError)) throw error;
    const reason = `the log had ${place.size} entries and has ${size}: ${error.message}`;
    throw fork(reason, { place, note });
  });
  refuseFork(
    () => verifyConsistency({ oldSize: size, oldRoot: root, newSize: place.size, newRoot: place.root, proof }),
    {
      place,
      note,
    },
  );
}

async function checkGrowth({ size, root }: ParsedCheckpoint, { place, note, tiles }: Compared): Promise<void> {
  const proof = await consistencyProof(place.size, size, tiles);
  refuseFork(
    () => verifyConsistency({ oldSize: place.size, oldRoot: place.root, newSize: size, newRoot: root, proof }),
    {
      place,
      note,
    },
  );
}

function refuseFork(check: () => void, between: Pick<Compared, "place" | "note">): void {
  try {
    check();
  } catch (error) {
    throw error instanceof Refusal ? fork(error.message, between) : error;
  }
}

/** Names both checkpoints: signed by the same log, they are the evidence. */
const fork = (reason: string, { place, note }: Pick<Compared, "place" | "note">): Refusal =>
  new Refusal("consistency_mismatch", `FORK: ${reason}; the log signed\n${place.note}\nand\n${note}`);

/** Says which entry is not what its tile says, or not what it was when it was checked. */
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
      throw new Refusal("entry_mismatch", `entry ${index} was rewritten: it is not the one that was checked before`);
    if (!sameBytes(tile.subarray(place, place + HASH_SIZE), leaf))
      throw new Refusal("entry_mismatch", `entry ${index} is not the one whose hash is in the tree`);
  }
}

async function checkEntry(bytes: Uint8Array, index: number, following: Following): Promise<void> {
  try {
    const entry = parseAnyEntry(bytes);
    if (entry.index !== index) throw new Refusal("entry_mismatch", `it names the index ${entry.index}`);
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
    throw new Refusal("entry_mismatch", `${quote(content.url)} has another sha256 than was logged`);
  return document;
}
