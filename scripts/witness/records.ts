import { DatabaseSync } from "node:sqlite";

/** The largest tree that the witness has cosigned of one log. */
export interface Head {
  readonly size: number;
  readonly root: Uint8Array;
  /** POSIX time of the cosignature. */
  readonly seconds: number;
  /** The note, with the signatures of the log and the witness. */
  readonly checkpoint: string;
}

/** The witness's record of each log. An accepted `advance` survives kill -9 and a loss of power. */
export interface Records {
  latest(origin: string): Head | null;
  /** Atomically replaces the head that was read. Returns false if the head has changed. */
  advance(origin: string, from: Head | null, to: Head): boolean;
  close(): void;
}

const TABLE = `CREATE TABLE IF NOT EXISTS head (
  origin TEXT PRIMARY KEY, size INTEGER NOT NULL, root BLOB NOT NULL, seconds INTEGER NOT NULL, checkpoint TEXT NOT NULL
) STRICT`;
const BUSY_MS = 5_000;

/** Opens the records. Several processes may share the file. */
export function openRecords(file: string): Records {
  const database = new DatabaseSync(file, { timeout: BUSY_MS });
  database.exec("PRAGMA synchronous = EXTRA");
  database.exec(TABLE);
  const select = database.prepare("SELECT size, root, seconds, checkpoint FROM head WHERE origin = ?");
  const insert = database.prepare("INSERT OR IGNORE INTO head VALUES (?, ?, ?, ?, ?)");
  const update = database.prepare(
    "UPDATE head SET size = ?, root = ?, seconds = ?, checkpoint = ? WHERE origin = ? AND size = ? AND root = ? AND seconds = ?",
  );
  return {
    latest: (origin) => (select.get(origin) as unknown as Head | undefined) ?? null,
    advance(origin, from, { size, root, seconds, checkpoint }) {
      const { changes } =
        from === null
          ? insert.run(origin, size, root, seconds, checkpoint)
          : update.run(size, root, seconds, checkpoint, origin, from.size, from.root, from.seconds);
      return Number(changes) === 1;
    },
    close: () => database.close(),
  };
}
