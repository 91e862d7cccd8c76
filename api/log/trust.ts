import { EMPTY_ROOT, sameBytes } from "../../packages/verifier/src/tlog/hash.ts";
import { rootHash } from "../../packages/verifier/src/tlog/tree.ts";
import type { Generation, LogStore } from "./store.ts";

/** A tree that a source outside the database knows. */
export interface KnownHead {
  readonly size: number;
  /** 32 bytes. */
  readonly root: Uint8Array;
  /** The source, for the operator: a witness's name, or an anchor's block. */
  readonly source: string;
  /** When the tree was seen or cosigned, or null if unknown. */
  readonly at: Date | null;
}

/**
 * The published size of this log, according to the witnesses that cosigned it and the anchors on a chain. A database that
 * was restored from a backup has no record of the entries that it lost, but these sources do.
 */
export interface KnownHeads {
  readonly sources: number;
  /**
   * Queries all sources. Never rejects: a source that does not respond is listed in `silent`. A source that has not seen
   * the log yet responds without a head, and is not silent. Reasons are given for the silent ones.
   */
  ask(): Promise<{ readonly heads: readonly KnownHead[]; readonly silent: readonly string[] }>;
}

/** The end of the log in the database. */
export interface OwnHead {
  readonly size: number;
  readonly root: Uint8Array;
  /** When its checkpoint was signed; null for an empty log. */
  readonly at: Date | null;
}

/**
 * Returns the reason that the log must not continue from `own`, or null. The reason is a source that knows a larger tree
 * than the database has, or a different one.
 * @param rootAt returns the root of the database's tree at a size up to its end
 */
async function findFork(
  own: OwnHead,
  heads: readonly KnownHead[],
  rootAt: (size: number) => Promise<Uint8Array>,
): Promise<string | null> {
  const furthest = heads.toSorted((one, other) => other.size - one.size)[0];
  if (furthest !== undefined && furthest.size > own.size) return lost(own, furthest);
  for (const head of heads)
    if (!sameBytes(head.root, await rootAt(head.size)))
      return `${head.source} knows a different tree of the first ${head.size} entries (${seen(head)}): its root is ${hex(head.root)}, and this database has ${hex(await rootAt(head.size))}. ${REMEDY}`;
  return null;
}

function lost({ size, at }: OwnHead, head: KnownHead): string {
  const range = head.size - size === 1 ? `entry ${size} is` : `entries ${size} to ${head.size - 1} are`;
  const since = at === null ? "since the log began" : `signed after ${at.toISOString()}`;
  return `the database has ${size} entries, and ${head.source} knows ${head.size} (${seen(head)}): ${range} missing, ${since}. ${REMEDY}`;
}

const REMEDY =
  "The log signs nothing, so that its history cannot fork, and records wait. Restore a database that has those entries, or end this log and begin a new one with the next LOG_GENERATION (docs/log.md, “Recovery”).";

const seen = ({ at }: KnownHead): string => (at === null ? "time unknown" : `seen at ${at.toISOString()}`);

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

/** The wait if some sources do not respond. */
const SOME_SILENT_MS = 600_000;
/** The wait if no source responds. Records queue meanwhile, and none is lost. */
const ALL_SILENT_MS = 86_400_000;

export interface TrustParts {
  readonly generation: number;
  readonly store: Pick<LogStore, "newest" | "tiles">;
  readonly heads: KnownHeads;
  /** Milliseconds since an arbitrary moment; never runs backwards. */
  readonly elapsedMs: () => number;
}

/** `wait`: some sources do not respond, and are queried again later. */
export type ForkCheck =
  | { readonly type: "trusted"; readonly own: OwnHead; readonly silent: readonly string[] }
  | { readonly type: "wait"; readonly own: OwnHead; readonly silent: readonly string[] }
  | { readonly type: "fork"; readonly problem: string };

/**
 * Checks that the database still has everything that was published, according to the witnesses and anchors. It waits for
 * silent ones, but only for a while, because a dead witness must not stop the log forever.
 */
export function createForkCheck({ generation, store, heads, elapsedMs }: TrustParts) {
  let silentSince: number | null = null;
  /** Whether to keep waiting for silent sources, counted from when one first did not respond. */
  const isPatient = (silent: readonly string[]): boolean => {
    silentSince = silent.length === 0 ? null : (silentSince ?? elapsedMs());
    const patienceMs = silent.length < heads.sources ? SOME_SILENT_MS : ALL_SILENT_MS;
    return silentSince !== null && elapsedMs() - silentSince < patienceMs;
  };
  const rootAt = (size: number) => rootHash(size, (ids) => store.tiles(generation, ids));
  return {
    rootAt,
    /** @param remembered the heads that this process has committed */
    async check(remembered: readonly KnownHead[]): Promise<ForkCheck> {
      // Query before reading the database: whatever is published was committed earlier.
      const { heads: found, silent } = await heads.ask();
      const own = (await store.newest(generation)) ?? { size: 0, root: EMPTY_ROOT, at: null };
      const problem = await findFork(own, [...found, ...remembered], rootAt);
      if (problem !== null) return { type: "fork", problem };
      return { type: isPatient(silent) ? "wait" : "trusted", own, silent };
    },
  };
}

/** Returns the reason that the settings do not fit the stored logs, or null. */
export function unfit(own: Omit<Generation, "startedAt">, known: readonly Generation[]): string | null {
  const { generation, origin, vkey } = own;
  const newest = known.at(-1)?.generation ?? 0;
  if (generation < newest)
    return `LOG_GENERATION is ${generation}, and the database has begun generation ${newest}: set LOG_GENERATION=${newest}.`;
  if (generation > newest + 1)
    return `LOG_GENERATION is ${generation}, and the newest log in the database is generation ${newest}: set LOG_GENERATION=${newest + 1} to begin the next one.`;
  const found = known.find((one) => one.generation === generation);
  const elsewhere = known.find((one) => one.generation !== generation && one.origin === origin);
  if (elsewhere !== undefined)
    return `the origin ${origin} belongs to generation ${elsewhere.generation} of the log: take LOG_ORIGIN out of the settings, or give generation ${generation} another one.`;
  if (found !== undefined && found.origin !== origin)
    return `the log's origin is ${found.origin}, and the settings make it ${origin}. To continue the log at another address, set LOG_ORIGIN=${found.origin}; otherwise restore BASE_URL, or end this log with LOG_GENERATION=${generation + 1}.`;
  if (found !== undefined && found.vkey !== vkey)
    return `the log's key is ${found.vkey}, and the settings make it ${vkey}: restore LOG_KEY (without it, the key follows from SIGNING_KEY), or end this log with LOG_GENERATION=${generation + 1}.`;
  return null;
}

/**
 * Returns the id of a signing key's next entry: its thumbprint, with `#2`, `#3`, … if it returns after another key has
 * signed. Returns null if it is the key that was announced last.
 * @param announced the ids of all announced keys, oldest first
 */
export function nextKeyId(thumbprint: string, announced: readonly string[]): string | null {
  const keys = announced.map((id) => id.replace(/#\d+$/, ""));
  if (keys.at(-1) === thumbprint) return null;
  const times = keys.filter((key) => key === thumbprint).length;
  return times === 0 ? thumbprint : `${thumbprint}#${times + 1}`;
}
