import type pg from "pg";
import type { GrantStore } from "./grant.ts";
import { bytes, inTransaction, lock, named } from "../platform/db/connection.ts";
import { addingExam, TAKEN_AGAIN } from "./store.ts";

const GRANT = `INSERT INTO seller_exam_grant AS g (exam, token_sha256) VALUES ($1, $2)
  ON CONFLICT (exam) DO UPDATE SET token_sha256 = excluded.token_sha256
  WHERE NOT EXISTS (SELECT FROM ${TAKEN_AGAIN("g.exam")})`;
const FIND = `SELECT g.token_sha256, (SELECT count(*)::int FROM seller_exam n JOIN seller_exam_result r ON r.exam = n.id
    WHERE n.again_of = g.exam AND r.is_our_fault) AS broken FROM seller_exam_grant g WHERE g.exam = $1`;
const FREE = `SELECT FROM seller_exam_grant g WHERE g.exam = $1 AND NOT EXISTS (SELECT FROM ${TAKEN_AGAIN("g.exam")})`;

/** Exams free of charge, one for each correction that grants one. */
export const createGrantStore = (pool: pg.Pool): GrantStore => ({
  async grant(exam, tokenSha256) {
    const { rowCount } = await pool.query(named(GRANT, [exam, bytes(tokenSha256)]));
    return rowCount === 1;
  },
  async find(exam) {
    const { rows } = await pool.query<{ token_sha256: Buffer; broken: number }>(named(FIND, [exam]));
    const [row] = rows;
    return row === undefined ? null : { tokenSha256: row.token_sha256.toString("hex"), broken: row.broken };
  },
  take: (order) =>
    inTransaction(pool, async (client) => {
      // Two takers of one grant wait for each other here.
      await lock(client, `free exam ${order.againOf}`);
      if ((await client.query(named(FREE, [order.againOf]))).rowCount === 0) return false;
      for (const { text, values } of addingExam(order)) await client.query(text, [...values]);
      return true;
    }),
});
