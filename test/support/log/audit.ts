import type pg from "pg";
import type { LogStore } from "../../../api/log/store.ts";
import { parseCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import { verifyNote } from "../../../packages/verifier/src/tlog/note.ts";
import { consistencyProof, verifyConsistency } from "../../../packages/verifier/src/tlog/tree.ts";
import type { VerifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import { naiveRoot } from "./naive-tree.ts";

interface Audited {
  readonly owner: Pick<pg.Client, "query">;
  readonly store: LogStore;
  readonly verifier: VerifierKey;
  readonly generation?: number;
}

/**
 * Everything that must hold for a log, whatever happened to those who wrote it. Empty if it does: indices without gaps,
 * each entry with its own index and once, every checkpoint signed and with the root of its entries, each one continued by
 * the next.
 */
export async function auditLog({ owner, store, verifier, generation = 1 }: Audited): Promise<readonly string[]> {
  const faults: string[] = [];
  const { rows: entries } = await owner.query<{ idx: string; type: string; ref: string; entry: Buffer }>(
    "SELECT idx, type, ref, entry FROM log_entry WHERE generation = $1 ORDER BY idx",
    [generation],
  );
  for (const [at, { idx, type, ref, entry }] of entries.entries()) {
    const said = JSON.parse(entry.toString());
    if (Number(idx) !== at) faults.push(`entry ${idx} stands in place ${at}`);
    if (said.index !== at || said.type !== type || said.id !== ref) faults.push(`entry ${at} says something else`);
  }
  const names = entries.map(({ type, ref }) => `${type} ${ref}`);
  if (new Set(names).size < names.length) faults.push("a record is in the log twice");
  const { rows: checkpoints } = await owner.query<{ size: string; root: Buffer; note: string }>(
    "SELECT size, root, note FROM log_checkpoint WHERE generation = $1 ORDER BY size",
    [generation],
  );
  if (Number(checkpoints.at(-1)?.size ?? 0) !== entries.length) faults.push("the newest checkpoint lacks entries");
  for (const [at, { size, root, note }] of checkpoints.entries()) {
    const { text } = await verifyNote(note, [verifier]);
    const said = parseCheckpoint(text);
    if (said.size !== Number(size) || !root.equals(said.root)) faults.push(`checkpoint ${size} says something else`);
    if (!root.equals(naiveRoot(entries.slice(0, Number(size)).map(({ entry }) => entry))))
      faults.push(`checkpoint ${size} has another root than its entries`);
    const next = checkpoints[at + 1];
    if (next === undefined) continue;
    const [oldSize, newSize] = [Number(size), Number(next.size)];
    const read = async (ids: Parameters<LogStore["tiles"]>[1]) =>
      (await store.tiles(generation, ids)).map((tile) => tile ?? new Uint8Array());
    const proof = await consistencyProof(oldSize, newSize, read);
    verifyConsistency({ oldSize, oldRoot: root, newSize, newRoot: next.root, proof });
  }
  return faults;
}
