import type { Announced } from "./entry-documents.ts";
import type { KnownTo } from "./known-heads.ts";
import type { Generation, StoredCheckpoint } from "./log-store.ts";

/**
 * The first entry of a later generation: which log has ended, the last tree of it that anybody knows, and how much of it
 * the database has kept. `silent` names those who could not be asked, and may know more.
 */
export function endedLog(
  { generation, origin, vkey }: Omit<Generation, "startedAt">,
  kept: StoredCheckpoint | null,
  { heads, silent }: KnownTo,
): Announced {
  const own = { size: kept?.size ?? 0, root: hex(kept?.root ?? new Uint8Array()) };
  const [furthest] = heads.toSorted((one, other) => other.size - one.size);
  const last =
    furthest === undefined || furthest.size <= own.size
      ? { ...own, source: "this service" }
      : { size: furthest.size, root: hex(furthest.root), source: furthest.source };
  const members = { type: "LogEnded", origin, vkey, last, kept: own, ...(silent.length === 0 ? {} : { silent }) };
  return { type: "log_ended", ref: String(generation), members };
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
