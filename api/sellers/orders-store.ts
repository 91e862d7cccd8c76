import { createHash } from "node:crypto";
import type pg from "pg";
import { bytes, inTransaction, lock, named } from "../platform/db/connection.ts";
import { addingExam, TAKEN_AGAIN } from "./exam-store.ts";
import type { ProbeResult } from "./look.ts";
import { PROBES_AN_ORIGIN, QUOTE_MINUTES } from "./products.ts";
import type { ExamOrder } from "./record.ts";

const GRANT = `INSERT INTO seller_exam_grant AS g (exam, token_sha256) VALUES ($1, $2)
  ON CONFLICT (exam) DO UPDATE SET token_sha256 = excluded.token_sha256
  WHERE NOT EXISTS (SELECT FROM ${TAKEN_AGAIN("g.exam")})`;
const FIND = `SELECT g.token_sha256, (SELECT count(*)::int FROM seller_exam n JOIN seller_exam_result r ON r.exam = n.id
    WHERE n.again_of = g.exam AND r.is_our_fault) AS broken FROM seller_exam_grant g WHERE g.exam = $1`;
const FREE = `SELECT FROM seller_exam_grant g WHERE g.exam = $1 AND NOT EXISTS (SELECT FROM ${TAKEN_AGAIN("g.exam")})`;

/** A grant that the operator made with a correction, and its status. */
export interface Grant {
  /** In hex. */
  readonly tokenSha256: string;
  /** The number of exams taken for it that a failure on our side ended. Each of them allows another. */
  readonly broken: number;
}

/** Stores free exams, one for each correction that grants one. */
export const createGrantStore = (pool: pg.Pool) => ({
  /**
   * Grants a free exam for a corrected one, or replaces its token.
   * @returns false once one has been taken
   */
  async grant(exam: string, tokenSha256: string): Promise<boolean> {
    const { rowCount } = await pool.query(named(GRANT, [exam, bytes(tokenSha256)]));
    return rowCount === 1;
  },
  async find(exam: string): Promise<Grant | null> {
    const { rows } = await pool.query<{ token_sha256: Buffer; broken: number }>(named(FIND, [exam]));
    const [row] = rows;
    return row === undefined ? null : { tokenSha256: row.token_sha256.toString("hex"), broken: row.broken };
  },
  /**
   * Adds the order.
   * @returns false if one was taken already, unless a failure on our side ended it
   */
  take: (order: ExamOrder): Promise<boolean> =>
    inTransaction(pool, async (client) => {
      // Two callers that take the same grant wait for each other here.
      await lock(client, `free exam ${order.againOf}`);
      if ((await client.query(named(FREE, [order.againOf]))).rowCount === 0) return false;
      for (const { text, values } of addingExam(order)) await client.query(text, [...values]);
      return true;
    }),
});

export type GrantStore = ReturnType<typeof createGrantStore>;

/** Returns the SHA-256 of a token in hex, which is all that is stored of it. */
export const tokenSha256 = (token: string): string => createHash("sha256").update(token).digest("hex");

const WINDOW = `interval '${QUOTE_MINUTES} min'`;

const FRESH = `SELECT found FROM seller_probe WHERE request = $1 AND found IS NOT NULL AND at > now() - ${WINDOW}
  ORDER BY at DESC LIMIT 1`;
const USED = `SELECT count(*)::int AS used, ceil(extract(epoch FROM min(at) + ${WINDOW} - now()))::int AS seconds
  FROM seller_probe WHERE origin = $1 AND at > now() - ${WINDOW}`;

/** Stores sellers' answers from before an exam was ordered, shared by all processes. */
export const createProbeStore = (pool: pg.Pool) => ({
  /** Returns the newest answer to this request, if it is still valid. */
  async fresh(request: Buffer): Promise<ProbeResult | null> {
    const { rows } = await pool.query<{ found: ProbeResult }>(named(FRESH, [request]));
    return rows[0]?.found ?? null;
  },
  /** Takes one of the origin's probes. If none is left, returns the seconds until one is. */
  begin: (origin: string, request: Buffer): Promise<{ readonly id: string } | number> =>
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
  async finish(id: string, found: ProbeResult): Promise<void> {
    await pool.query(named("UPDATE seller_probe SET found = $2 WHERE id = $1", [id, JSON.stringify(found)]));
  },
});

export type ProbeStore = ReturnType<typeof createProbeStore>;
