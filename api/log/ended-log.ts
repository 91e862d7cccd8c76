import type { Announced } from "./entry-documents.ts";
import type { KnownHead } from "./known-heads.ts";
import type { Generation, StoredCheckpoint } from "./log-store.ts";

/**
 * The first entry of a later generation: which log has ended, the last tree of it that anybody knows, and how much of it
 * the database has kept.
 */
export function endedLog(
  { generation, origin, vkey }: Omit<Generation, "startedAt">,
  kept: StoredCheckpoint | null,
  heads: readonly KnownHead[],
): Announced {
  const own = { size: kept?.size ?? 0, root: hex(kept?.root ?? new Uint8Array()) };
  const [furthest] = heads.toSorted((one, other) => other.size - one.size);
  const last =
    furthest === undefined || furthest.size <= own.size
      ? { ...own, source: "this service" }
      : { size: furthest.size, root: hex(furthest.root), source: furthest.source };
  return { type: "log_ended", ref: String(generation), members: { type: "LogEnded", origin, vkey, last, kept: own } };
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
