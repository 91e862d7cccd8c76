import type pg from "pg";
import { named, type Statement } from "../../platform/db/connection.ts";
import { isExamId } from "../record.ts";
import { INTERRUPTED, type Rehearsal, type RehearsalOrder, type RehearsalResult } from "./rehearsal.ts";

/** A rehearsal that has run for this long is over, because its process must have died. */
const ABANDONED = "interval '5 min'";

/** Takes the oldest rehearsal that waits and whose origin has none running. */
const TAKE = `UPDATE seller_rehearsal SET taken_at = now() WHERE id = (
    SELECT id FROM seller_rehearsal r WHERE taken_at IS NULL AND NOT EXISTS (SELECT FROM seller_rehearsal o
      WHERE o.origin = r.origin AND o.result IS NULL AND o.taken_at > now() - ${ABANDONED})
    ORDER BY ordered_at LIMIT 1 FOR UPDATE SKIP LOCKED)
  RETURNING id, request`;
const GET = `SELECT id, request, result, taken_at <= now() - ${ABANDONED} AS is_abandoned FROM seller_rehearsal WHERE id = $1`;
const OPEN = `SELECT coalesce(sum((request->>'amount')::numeric), 0)::text AS amount, count(*)::int AS count
  FROM seller_rehearsal WHERE result IS NULL AND (taken_at IS NULL OR taken_at > now() - ${ABANDONED})`;

interface Row {
  readonly id: string;
  readonly request: RehearsalOrder;
  readonly result: string | null;
  readonly is_abandoned: boolean | null;
}

export const createRehearsalStore = (pool: pg.Pool) => ({
  /** Returns the write that adds an order. */
  adding: (id: string, origin: string, order: RehearsalOrder): Statement => ({
    text: "INSERT INTO seller_rehearsal (id, origin, request) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
    values: [id, origin, JSON.stringify(order)],
  }),
  async get(id: string): Promise<Rehearsal | null> {
    const { rows } = await pool.query<Row>(named(GET, [id]));
    const [row] = rows;
    if (row === undefined || !isExamId(id)) return null;
    const { request: order, result, is_abandoned: isAbandoned } = row;
    if (result !== null) return { id, order, result: JSON.parse(result) };
    return { id, order, result: isAbandoned === true ? INTERRUPTED("The rehearsal broke off on our side.") : null };
  },
  /** Starts and returns the next rehearsal that is due, or null. */
  async take(): Promise<Omit<Rehearsal, "result"> | null> {
    const { rows } = await pool.query<Pick<Row, "id" | "request">>(named(TAKE, []));
    const [row] = rows;
    return row === undefined ? null : { id: row.id, order: row.request };
  },
  async complete(id: string, result: RehearsalResult): Promise<void> {
    await pool.query(named("UPDATE seller_rehearsal SET result = $2 WHERE id = $1", [id, JSON.stringify(result)]));
  },
  /** Returns how many rehearsals wait or run, and the sum of their sellers' prices in atomic units. */
  async open(): Promise<{ readonly count: number; readonly amount: bigint }> {
    const { rows } = await pool.query<{ amount: string; count: number }>(named(OPEN, []));
    const [{ amount, count } = { amount: "0", count: 0 }] = rows;
    return { count, amount: BigInt(amount) };
  },
});

export type RehearsalStore = ReturnType<typeof createRehearsalStore>;
