import type pg from "pg";
import type { EntryType } from "../../packages/verifier/src/tlog/entry-types.ts";
import { type TileId, tilePath } from "../../packages/verifier/src/tlog/tile.ts";

interface CheckpointColumns {
  size: string;
  root: Buffer;
  note: string;
  at: Date;
}

interface EntryColumns {
  generation: number;
  idx: string;
  type: EntryType;
  ref: string;
  entry: Buffer;
  at: Date;
}

const CHECKPOINT = "SELECT size, root, note, at FROM log_checkpoint WHERE generation = $1";
const ENTRY = "SELECT generation, idx, type, ref, entry, at FROM log_entry";

/** All requested tiles in one statement, in the requested order. */
const TILES = `SELECT substr(tile.hashes, 1, 32 * asked.width) AS hashes
  FROM unnest($2::smallint[], $3::bigint[], $4::int[]) WITH ORDINALITY AS asked (level, n, width, place)
  LEFT JOIN log_tile AS tile
    ON tile.generation = $1 AND tile.level = asked.level AND tile.n = asked.n AND length(tile.hashes) >= 32 * asked.width
  ORDER BY place`;

export type LogStore = ReturnType<typeof createLogStore>;

/** Reads the log. Everything that it returns is committed and immutable. */
export function createLogStore(pool: pg.Pool) {
  const checkpoint = async (name: string, text: string, values: readonly unknown[]) => {
    const { rows } = await pool.query<CheckpointColumns>({ name, text, values: [...values] });
    return rows[0] === undefined ? null : parseCheckpoint(rows[0]);
  };
  const entries = async (name: string, text: string, values: readonly unknown[]): Promise<readonly LoggedEntry[]> =>
    (await pool.query<EntryColumns>({ name, text, values: [...values] })).rows.map(parseEntry);
  return {
    newest: (generation: number) => checkpoint("log-newest", `${CHECKPOINT} ORDER BY size DESC LIMIT 1`, [generation]),
    checkpointAt: (generation: number, size: number) =>
      checkpoint("log-checkpoint", `${CHECKPOINT} AND size = $2`, [generation, size]),
    /** Returns the first `32 * width` bytes of each tile, in the requested order. @throws Error if a tile is missing */
    async tiles(generation: number, ids: readonly TileId[]): Promise<readonly Uint8Array[]> {
      const { rows } = await pool.query<{ hashes: Buffer | null }>({
        name: "log-tiles",
        text: TILES,
        values: [generation, ids.map(({ level }) => level), ids.map(({ n }) => n), ids.map(({ width }) => width)],
      });
      return ids.map((id, place) => {
        const hashes = rows[place]?.hashes ?? null;
        if (hashes === null) throw new Error(`log ${generation}: ${tilePath(id)} is missing`);
        return hashes;
      });
    },
    /** Returns the entries from index `from` up to but not including `to`, fewer if the tree ends before. */
    async entries(generation: number, from: number, to: number): Promise<readonly Uint8Array[]> {
      const text = `${ENTRY} WHERE generation = $1 AND idx >= $2 AND idx < $3 ORDER BY idx`;
      return (await entries("log-entries", text, [generation, from, to])).map(({ entry }) => entry);
    },
    find: async (type: EntryType, ref: string) =>
      (await entries("log-find", `${ENTRY} WHERE type = $1 AND ref = $2`, [type, ref]))[0] ?? null,
    /** Returns the entries of one record with any of these types, in the order of the log. */
    findAll: (ref: string, types: readonly EntryType[]) =>
      entries("log-find-all", `${ENTRY} WHERE ref = $1 AND type = ANY($2) ORDER BY generation, idx`, [ref, types]),
    at: async (generation: number, index: number) =>
      (await entries("log-at", `${ENTRY} WHERE generation = $1 AND idx = $2`, [generation, index]))[0] ?? null,
    /** Oldest first. */
    async generations(): Promise<readonly Generation[]> {
      const { rows } = await pool.query<Generation>(
        'SELECT generation, origin, vkey, started_at AS "startedAt" FROM log ORDER BY generation',
      );
      return rows;
    },
  };
}

const parseCheckpoint = ({ size, ...row }: CheckpointColumns): StoredCheckpoint => ({ ...row, size: Number(size) });

const parseEntry = ({ idx, ...row }: EntryColumns): LoggedEntry => ({ ...row, index: Number(idx) });

/** A checkpoint as it is stored, with only the log's signature, or as readers get it, with every cosignature. */
export interface StoredCheckpoint {
  /** The number of entries. */
  readonly size: number;
  /** 32 bytes. */
  readonly root: Uint8Array;
  /** The signed note. */
  readonly note: string;
  readonly at: Date;
}

export interface LoggedEntry {
  readonly type: EntryType;
  /** The id of the certificate, verdict, or payment (`0x…`), or a version. */
  readonly ref: string;
  readonly generation: number;
  readonly index: number;
  /** The leaf's bytes. */
  readonly entry: Uint8Array;
  readonly at: Date;
}

/** A separate log with its own origin and key. Only the newest is written; the others have ended. */
export interface Generation {
  readonly generation: number;
  readonly origin: string;
  readonly vkey: string;
  readonly startedAt: Date;
}
