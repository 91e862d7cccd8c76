import type pg from "pg";

/** What a table takes on disk, its indexes and long values included. */
export async function tableBytes(owner: pg.Client | pg.Pool, table: "payment"): Promise<number> {
  const { rows } = await owner.query<{ bytes: number }>("SELECT pg_total_relation_size($1::regclass)::int AS bytes", [
    table,
  ]);
  return rows[0]?.bytes ?? Number.NaN;
}
