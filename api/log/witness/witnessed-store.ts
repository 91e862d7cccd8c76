import type pg from "pg";
import type { WitnessPolicy } from "./settings.ts";
import { bytes, named } from "../../platform/db/connection.ts";

/** By size: of the newest cosignature of each of these keys, the one that completed the quorum. */
const WITNESSED = `SELECT size, (array_agg(newest ORDER BY newest DESC))[$4] AS seconds
  FROM (SELECT size, max(timestamp) AS newest FROM log_cosignature
    WHERE generation = $1 AND (key_name, key_id) IN (SELECT * FROM unnest($2::text[], $3::bytea[]))
    GROUP BY size, key_name, key_id) AS cosigned
  GROUP BY size HAVING count(*) >= $4 ORDER BY size DESC LIMIT 1`;

/** The newest checkpoint that enough witnesses have cosigned, and since when they have seen no other log. */
export async function readWitnessed(
  pool: pg.Pool,
  { witnesses, quorum }: WitnessPolicy,
  generation: number,
): Promise<{ readonly size: number; readonly at: Date } | null> {
  if (quorum === 0) return null;
  const keys = [witnesses.map(({ key }) => key.name), witnesses.map(({ key }) => bytes(key.id))];
  const { rows } = await pool.query<{ size: string; seconds: string }>(named(WITNESSED, [generation, ...keys, quorum]));
  return rows[0] === undefined ? null : { size: Number(rows[0].size), at: new Date(Number(rows[0].seconds) * 1_000) };
}
