import type pg from "pg";
import type { Mark } from "./lookup-ports.ts";
import type { MarkStore } from "./marks.ts";
import { bytes, hex } from "../../platform/db/connection.ts";

interface MarkRow {
  readonly block: string;
  readonly hash: Buffer;
  readonly nonce: Buffer;
}

const COLUMNS = "block, hash, nonce";
const BETWEEN = `SELECT ${COLUMNS} FROM lookup_mark WHERE block BETWEEN $1 AND $2 ORDER BY block`;
const NEWEST = `SELECT ${COLUMNS} FROM lookup_mark WHERE newest_at > now() - make_interval(secs => $1) ORDER BY block DESC LIMIT 1`;
const ADD = `INSERT INTO lookup_mark AS known (block, hash, nonce, newest_at) VALUES ($1, $2, $3, CASE WHEN $4 THEN now() END)
  ON CONFLICT (block) DO UPDATE SET seen_at = now(), newest_at = coalesce(excluded.newest_at, known.newest_at)
  RETURNING ${COLUMNS}`;

const markOf = ({ block, hash, nonce }: MarkRow): Mark => ({
  block: Number(block),
  hash: hex(hash),
  nonce: hex(nonce),
});

/** Remembers final blocks by which nodes are checked, for all processes. */
export function createMarkStore(pool: pg.Pool): MarkStore {
  const one = async (text: string, values: readonly unknown[]) => {
    const { rows } = await pool.query<MarkRow>(text, [...values]);
    return rows[0] === undefined ? null : markOf(rows[0]);
  };
  return {
    between: ({ first, last }, which) => one(`${BETWEEN} ${which === "first" ? "ASC" : "DESC"} LIMIT 1`, [first, last]),
    newest: (withinSeconds) => one(NEWEST, [withinSeconds]),
    add: async ({ block, hash, nonce }, isNewest) =>
      (await one(ADD, [block, bytes(hash), bytes(nonce), isNewest])) as Mark,
  };
}
