/** The number of hashes in a full tile. */
export const TILE_WIDTH = 256;

/** A tile of hashes (C2SP tlog-tiles): number `n`, from the left, of its level. Level 0 has the hashes of entries. */
export interface TileId {
  readonly level: number;
  readonly n: number;
  /** The number of hashes in it, 1 to 256; a tile with fewer than 256 is partial. */
  readonly width: number;
}

/** A bundle of `width` entries: number `n` from the left. */
export interface EntriesId {
  readonly entries: true;
  readonly n: number;
  readonly width: number;
}

/** Reads tiles, each `32 * width` bytes long, in the given order. */
export type ReadTiles = (ids: readonly TileId[]) => Promise<readonly Uint8Array[]>;

const MAX_LEVEL = 63;

/** Returns the path of a tile below the log's prefix, such as `tile/0/x001/067.p/12`. */
export const tilePath = ({ level, n, width }: TileId): string => `tile/${level}/${numberPath(n)}${suffix(width)}`;

/** Returns the path of a bundle of entries below the log's prefix, such as `tile/entries/x001/067.p/12`. */
export const entriesPath = (n: number, width: number = TILE_WIDTH): string =>
  `tile/entries/${numberPath(n)}${suffix(width)}`;

function numberPath(n: number): string {
  const last = String(n % 1000).padStart(3, "0");
  let path = last;
  for (let rest = Math.floor(n / 1000); rest > 0; rest = Math.floor(rest / 1000))
    path = `x${String(rest % 1000).padStart(3, "0")}/${path}`;
  return path;
}

const suffix = (width: number): string => (width === TILE_WIDTH ? "" : `.p/${width}`);

const PATH = /^tile\/(entries|0|[1-9]\d?)\/((?:x\d{3}\/){0,5}\d{3})(?:\.p\/([1-9]\d{0,2}))?$/;

/**
 * Returns the tile or bundle that a path names, or null for a path other than those that `tilePath` and `entriesPath`
 * write.
 */
export function parseTilePath(path: string): TileId | EntriesId | null {
  const [, level = "", number = "", partial] = PATH.exec(path) ?? [];
  if (number === "") return null;
  const n = Number(number.replace(/[x/]/g, ""));
  const width = partial === undefined ? TILE_WIDTH : Number(partial);
  // The indexes of the tile's entries must also be safe integers.
  if (!Number.isSafeInteger(n * TILE_WIDTH) || (partial !== undefined && width >= TILE_WIDTH)) return null;
  if (numberPath(n) !== number) return null;
  if (level === "entries") return { entries: true, n, width };
  return Number(level) <= MAX_LEVEL ? { level: Number(level), n, width } : null;
}

/** Returns the number of hashes in a level of a tree: one for each full subtree of 256 to the power of `level`. */
export const levelWidth = (size: number, level: number): number => Math.floor(size / TILE_WIDTH ** level);

/** Returns the width of tile `n` of a level in a tree of `size` entries; 0 or less if it does not exist. */
export const tileWidth = (size: number, level: number, n: number): number =>
  Math.min(TILE_WIDTH, levelWidth(size, level) - n * TILE_WIDTH);

/** The maximum size of an entry in C2SP tlog-tiles. */
export const MAX_ENTRY_BYTES = 65_535;

/** Returns a bundle: each entry after its length in two bytes, big-endian (C2SP tlog-tiles, "Log entries"). */
export function formatBundle(entries: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(entries.reduce((sum, { length }) => sum + 2 + length, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const entry of entries) {
    if (entry.length > MAX_ENTRY_BYTES) throw new RangeError(`an entry has ${entry.length} bytes`);
    view.setUint16(at, entry.length);
    bytes.set(entry, at + 2);
    at += 2 + entry.length;
  }
  return bytes;
}

/** Returns the entries of a bundle, or null if the bytes are not a bundle. */
export function parseBundle(bytes: Uint8Array): readonly Uint8Array[] | null {
  const entries: Uint8Array[] = [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  while (at + 2 <= bytes.length) {
    const end = at + 2 + view.getUint16(at);
    if (end > bytes.length) return null;
    entries.push(bytes.subarray(at + 2, end));
    at = end;
  }
  return at === bytes.length ? entries : null;
}
