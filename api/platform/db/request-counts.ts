import type pg from "pg";
import { named } from "./connection.ts";

/** In the order of the key, so that two processes never deadlock. */
const ADD = `INSERT INTO request_count AS c (client, used, until)
    SELECT client, used, now() + interval '1 minute' FROM unnest($1::text[], $2::int[]) AS u (client, used) ORDER BY client
  ON CONFLICT (client) DO UPDATE SET used = excluded.used + CASE WHEN c.until > now() THEN c.used ELSE 0 END,
    until = CASE WHEN c.until > now() THEN c.until ELSE excluded.until END
  RETURNING client, used, extract(epoch FROM until - now())::float8 AS seconds`;

/** A client's use of its minute, in all processes. */
export interface SharedCount {
  readonly client: string;
  readonly used: number;
  /** Until its minute ends, by the clock of the database, because the clocks of processes differ. */
  readonly seconds: number;
}

/** Adds requests to their clients' minutes, each client once. Returns the totals. */
export async function addRequestCounts(
  pool: pg.Pool,
  added: readonly (readonly [client: string, requests: number])[],
): Promise<readonly SharedCount[]> {
  const values = [added.map(([client]) => client), added.map(([, requests]) => requests)];
  return (await pool.query<SharedCount>(named(ADD, values))).rows;
}
