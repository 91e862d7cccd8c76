import type pg from "pg";
import { change, named } from "./connection.ts";

export interface Counted {
  readonly count: number;
  /** In atomic units. */
  readonly amount: bigint;
}

const MERGED_TOGETHER = 10_000;

const ALL =
  "(SELECT name, part, count, amount FROM counter UNION ALL SELECT name, part, count, amount FROM counter_change) AS counted";

const READ = `SELECT name, part, sum(count) AS count, sum(amount) AS amount FROM ${ALL} WHERE name = ANY($1) GROUP BY name, part`;

/** Reads running totals, by name and part. */
export async function readCounters<Name extends string>(
  pool: pg.Pool,
  names: readonly Name[],
): Promise<Record<Name, ReadonlyMap<string, Counted>>> {
  const { rows } = await pool.query<{ name: Name; part: string; count: string; amount: string }>(named(READ, [names]));
  const of = (name: Name): ReadonlyMap<string, Counted> =>
    new Map(
      rows
        .filter((row) => row.name === name)
        .map(({ part, count, amount }) => [part, { count: Number(count), amount: BigInt(amount) }]),
    );
  const found: Partial<Record<Name, ReadonlyMap<string, Counted>>> = {};
  for (const name of names) found[name] = of(name);
  return found as Record<Name, ReadonlyMap<string, Counted>>;
}

const SUM = `SELECT coalesce(sum(count), 0) AS count FROM ${ALL} WHERE name = $1 AND part <= $2`;

/** Sums the parts of a name up to and including `last` in sort order. */
export async function sumThrough(pool: pg.Pool, name: string, last: string): Promise<number> {
  const { rows } = await pool.query<{ count: string }>(named(SUM, [name, last]));
  return Number(rows[0]?.count ?? 0);
}

/** In the order of the key, so that two processes never deadlock. */
const MERGE = `WITH gone AS (DELETE FROM counter_change WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM counter_change LIMIT ${MERGED_TOGETHER} FOR UPDATE SKIP LOCKED)) RETURNING name, part, count, amount),
  merged AS (INSERT INTO counter (name, part, count, amount)
    SELECT name, part, sum(count), sum(amount) FROM gone GROUP BY name, part ORDER BY name, part
    ON CONFLICT (name, part) DO UPDATE SET count = counter.count + excluded.count, amount = counter.amount + excluded.amount)
  SELECT FROM gone`;

/** Adds a batch of changes to their totals; returns their number, 0 when there are no more. */
export const mergeCounters = (pool: pg.Pool): Promise<number> => change(pool, MERGE);
