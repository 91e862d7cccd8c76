import type { LogStore } from "../../api/log/log-store.ts";
import { logPath } from "../../api/log/origin.ts";
import type { LogCheckpoints } from "../../api/log/served-checkpoint.ts";
import { formatProof } from "../../packages/verifier/src/tlog/tlog-proof.ts";
import { inclusionProof } from "../../packages/verifier/src/tlog/tree.ts";
import { continues, type Published, readCheckpoint } from "./continuity.ts";
import type { Folder } from "./folder.ts";
import { ExportRefusal } from "./refusal.ts";
import { removeOutgrown } from "./remove-outgrown.ts";
import type { ReadTile } from "./signed-tree.ts";
import { writeTree } from "./write-tree.ts";

export interface LogSource {
  readonly store: Pick<LogStore, "tiles" | "entries" | "generations">;
  readonly checkpoints: Pick<LogCheckpoints, "served">;
}

export interface Exported {
  readonly origin: string;
  /** Entries of the log in the folder. */
  readonly size: number;
  /** Of them, since the last time. */
  readonly added: number;
  /** Entries that the database lacks: only of a log that has ended. */
  readonly lost: number;
  readonly hasEnded: boolean;
}

/** Writes each log of the service, oldest first. @throws ExportRefusal for a fork, and for a database that has lost entries */
export async function exportLogs(
  source: LogSource,
  folder: Folder,
  progress: (entry: number, size: number) => void,
): Promise<readonly Exported[]> {
  const exported: Exported[] = [];
  const generations = await source.store.generations();
  await refuseLater(folder, generations.length);
  for (const [place, one] of generations.entries()) {
    const hasEnded = place < generations.length - 1;
    exported.push(await exportLog({ ...one, hasEnded, source, folder, progress }));
  }
  return exported;
}

/** A database from before the newest log began would go on with one that has ended. */
async function refuseLater(folder: Folder, newest: number): Promise<void> {
  for (const name of await folder.list("log"))
    if (/^\d+$/.test(name) && Number(name) > newest && (await folder.read(`log/${name}/checkpoint`)) !== null)
      throw new ExportRefusal(
        `The folder has log ${name} of the service, and the database knows ${newest}: it was restored from a backup. Nothing was written. docs/log.md says under "Recovery" how to go on.`,
      );
}

interface OneLog {
  readonly generation: number;
  readonly origin: string;
  readonly vkey: string;
  readonly hasEnded: boolean;
  readonly source: LogSource;
  readonly folder: Folder;
  readonly progress: (entry: number, size: number) => void;
}

async function exportLog(log: OneLog): Promise<Exported> {
  const { generation, origin, vkey, hasEnded, source, folder, progress } = log;
  const at = logPath(generation).slice(1);
  const served = await source.checkpoints.served(generation);
  const newest = served === null ? null : await readCheckpoint(served.note, vkey, `The checkpoint of ${origin}`);
  const note = await folder.read(`${at}/checkpoint`);
  const before = note === null ? null : await readCheckpoint(note, vkey, `${folder.root}/${at}/checkpoint`);
  const [from, size] = [before?.size ?? 0, newest?.size ?? 0];
  const tileOf: ReadTile = async (id) => {
    const [hashes = null] = await source.store.tiles(generation, [id]);
    if (hashes !== null) return hashes;
    throw new ExportRefusal(`The database has no tile ${id.n} of level ${id.level}, ${id.width} wide, of ${origin}.`);
  };
  await continues({ before, newest, hasEnded, origin, tileOf, folder, at });
  if (newest === null || size < from) return { origin, size: from, added: 0, lost: from - size, hasEnded };
  const entriesOf = (first: number, end: number) => source.store.entries(generation, first, end);
  await writeTree({ tree: newest, from, at, folder, tileOf, entriesOf, progress });
  if (generation > 1 && size > 0) await keepBeginning(newest, { at, folder, tileOf, entriesOf });
  await folder.settle();
  if (note === null || !note.equals(Buffer.from(newest.note)))
    await folder.replace(`${at}/checkpoint`, Buffer.from(newest.note));
  await folder.settle();
  if (size > from) await removeOutgrown(folder, at, from);
  return { origin, size, added: size - from, lost: 0, hasEnded };
}

/** The proof of a later log's first entry: that the log before it has ended, and how. */
async function keepBeginning(
  { size, note }: Published,
  parts: {
    readonly at: string;
    readonly folder: Folder;
    readonly tileOf: ReadTile;
    readonly entriesOf: (first: number, end: number) => Promise<readonly Uint8Array[]>;
  },
): Promise<void> {
  const path = `${parts.at}/entry/0.tlog-proof`;
  if ((await parts.folder.read(path)) !== null) return;
  const hashes = await inclusionProof(0, size, (ids) => Promise.all(ids.map(parts.tileOf)));
  const [extra] = await parts.entriesOf(0, 1);
  await parts.folder.replace(path, Buffer.from(formatProof({ index: 0, hashes, checkpoint: note, extra })));
}
