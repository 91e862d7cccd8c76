import type pg from "pg";
import type { Found, ProbeStore } from "./ports.ts";
import { PROBES_AN_ORIGIN, QUOTE_MINUTES } from "./products.ts";
import { inTransaction, lock, named } from "../platform/db/connection.ts";

const WINDOW = `interval '${QUOTE_MINUTES} min'`;

const FRESH = `SELECT found FROM seller_probe WHERE request = $1 AND found IS NOT NULL AND at > now() - ${WINDOW}
  ORDER BY at DESC LIMIT 1`;
const USED = `SELECT count(*)::int AS used, ceil(extract(epoch FROM min(at) + ${WINDOW} - now()))::int AS seconds
  FROM seller_probe WHERE origin = $1 AND at > now() - ${WINDOW}`;

/** What sellers answered before an exam of them was ordered. */
export const createProbeStore = (pool: pg.Pool): ProbeStore => ({
  async fresh(request) {
    const { rows } = await pool.query<{ found: Found }>(named(FRESH, [request]));
    return rows[0]?.found ?? null;
  },
  begin: (origin, request) =>
    inTransaction(pool, async (client) => {
      await lock(client, `seller probe ${origin}`);
      const { rows } = await client.query<{ used: number; seconds: number | null }>(named(USED, [origin]));
      const [{ used, seconds } = { used: 0, seconds: null }] = rows;
      if (used >= PROBES_AN_ORIGIN) return Math.max(1, seconds ?? 1);
      const added = await client.query<{ id: string }>(
        named("INSERT INTO seller_probe (origin, request) VALUES ($1, $2) RETURNING id", [origin, request]),
      );
      return { id: added.rows[0]?.id ?? "" };
    }),
  async finish(id, found) {
    await pool.query(named("UPDATE seller_probe SET found = $2 WHERE id = $1", [id, JSON.stringify(found)]));
  },
});
