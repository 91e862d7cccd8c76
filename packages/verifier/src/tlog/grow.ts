import { completeRoot, EMPTY_ROOT, HASH_SIZE, nodeHash } from "./hash.ts";
import { levelWidth, TILE_WIDTH } from "./tile.ts";

/** The rightmost tile of each level, if it is partial: `32 * width` bytes by level. */
export type Edge = ReadonlyMap<number, Uint8Array>;

export interface Growth {
  readonly size: number;
  readonly root: Uint8Array;
  /** Each tile that is new or longer than before, with all its hashes. */
  readonly tiles: readonly { readonly level: number; readonly n: number; readonly hashes: Uint8Array }[];
  /** The edge of the larger tree, for the next call. */
  readonly edge: Edge;
}

const TILE_BYTES = TILE_WIDTH * HASH_SIZE;

/**
 * Appends leaves, given by their hashes, to a tree of `size` entries. Only its right edge is needed.
 * @throws Error if the edge does not belong to a tree of this size
 */
export function growTiles(tree: {
  readonly size: number;
  readonly edge: Edge;
  readonly leaves: readonly Uint8Array[];
}): Growth {
  const tiles: { level: number; n: number; hashes: Uint8Array }[] = [];
  const edge = new Map<number, Uint8Array>();
  const size = tree.size + tree.leaves.length;
  if (!Number.isSafeInteger(size)) throw new RangeError(`a tree cannot have ${size} entries`);
  let added: readonly Uint8Array[] = tree.leaves;
  for (let level = 0; levelWidth(size, level) > 0; level++) {
    const before = levelWidth(tree.size, level);
    const roots: Uint8Array[] = [];
    let hashes = partial(tree.edge, level, before % TILE_WIDTH);
    let n = Math.floor(before / TILE_WIDTH);
    for (let at = 0; at < added.length; ) {
      const room = TILE_WIDTH - hashes.length / HASH_SIZE;
      const part = added.slice(at, at + room);
      hashes = concat(hashes, part);
      tiles.push({ level, n, hashes });
      at += part.length;
      if (hashes.length === TILE_BYTES) {
        roots.push(completeRoot(hashes));
        hashes = new Uint8Array();
        n++;
      }
    }
    if (hashes.length > 0) edge.set(level, hashes);
    added = roots;
  }
  return { size, root: edgeRoot(edge), tiles, edge };
}

/**
 * Returns the root of the tree with this right edge: its partial tiles contain exactly the largest perfect subtrees.
 */
function edgeRoot(edge: Edge): Uint8Array {
  let root: Uint8Array | null = null;
  for (const level of [...edge.keys()].sort((one, other) => one - other)) {
    const hashes = edge.get(level) as Uint8Array;
    let end = hashes.length;
    // From the right, smallest perfect subtree first, following the binary digits of the width.
    for (let span = HASH_SIZE; span <= end; span *= 2) {
      if (end % (2 * span) === 0) continue;
      const subtree = completeRoot(hashes.subarray(end - span, end));
      root = root === null ? subtree : nodeHash(subtree, root);
      end -= span;
    }
  }
  return root ?? EMPTY_ROOT;
}

function partial(edge: Edge, level: number, width: number): Uint8Array {
  const hashes = edge.get(level) ?? new Uint8Array();
  if (width === 0) return new Uint8Array();
  if (hashes.length === width * HASH_SIZE) return hashes;
  throw new Error(`the edge at level ${level} has ${hashes.length} bytes; expected ${width * HASH_SIZE}`);
}

function concat(before: Uint8Array, hashes: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(before.length + hashes.length * HASH_SIZE);
  all.set(before);
  for (const [at, hash] of hashes.entries()) {
    if (hash.length !== HASH_SIZE) throw new Error(`a hash has ${hash.length} bytes, expected ${HASH_SIZE}`);
    all.set(hash, before.length + at * HASH_SIZE);
  }
  return all;
}
