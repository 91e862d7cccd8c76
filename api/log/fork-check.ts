import { sameBytes } from "../../packages/verifier/src/tlog/hash.ts";
import type { KnownHead } from "./known-heads.ts";

/** The end of the log that the database has. */
export interface OwnHead {
  readonly size: number;
  readonly root: Uint8Array;
  /** When its checkpoint was signed; null for an empty log. */
  readonly at: Date | null;
}

/**
 * Why a log must not be continued from `own`, or null: somebody outside has seen a larger tree than the database has, or
 * another one.
 * @param rootAt the root of the database's own tree at a size up to its end
 */
export async function findFork(
  own: OwnHead,
  heads: readonly KnownHead[],
  rootAt: (size: number) => Promise<Uint8Array>,
): Promise<string | null> {
  const furthest = heads.toSorted((one, other) => other.size - one.size)[0];
  if (furthest !== undefined && furthest.size > own.size) return lost(own, furthest);
  for (const head of heads)
    if (!sameBytes(head.root, await rootAt(head.size)))
      return `${head.source} knows another tree of the first ${head.size} entries than this database (${seen(head)}): root ${hex(head.root)}, not ${hex(await rootAt(head.size))}. ${REMEDY}`;
  return null;
}

function lost({ size, at }: OwnHead, head: KnownHead): string {
  const range = head.size - size === 1 ? `entry ${size} is` : `entries ${size} to ${head.size - 1} are`;
  const since = at === null ? "since the log began" : `signed after ${at.toISOString()}`;
  return `the database has ${size} entries, and ${head.source} knows ${head.size} (${seen(head)}): ${range} missing, ${since}. ${REMEDY}`;
}

const REMEDY =
  "Nothing is signed, so that no second history begins; records wait. Restore a database that has those entries, or end this log and begin a new one with the next LOG_GENERATION (docs/log.md, “Recovery”).";

const seen = ({ at }: KnownHead): string => (at === null ? "time unknown" : `seen at ${at.toISOString()}`);

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
