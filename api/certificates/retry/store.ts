import type pg from "pg";
import { bytes, hex, type Statement, type Transaction } from "../../platform/db/connection.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { Result } from "../certificate.ts";
import { WINDOW_SECONDS } from "../kinds/retry.ts";
import type { Sender } from "../sessions/session.ts";
import type { SessionTable } from "../sessions/store.ts";
import type { LostOrder, Way } from "./lost-order.ts";

/** Returns the payment ID of such an order in the journal, by which two authorizations for it can be distinguished. */
export const paymentIdOf = (session: string): string => `challenge:${session}/lost`;

interface Columns {
  way: Way;
  paid_nonce: Buffer | null;
  tx: Buffer | null;
  taken: Buffer | null;
  lost_at: Date | null;
  sent_again_at: Date | null;
  asked_at: Date | null;
  second_at: Date | null;
}

/** When something was presented or asked, and by whom. */
interface Presented {
  readonly sender: Sender;
  readonly now: Date;
}

/** A payment whose settlement is permanently gone no longer counts. */
const readFrom = (
  orders: string,
  sessions: SessionTable,
) => `SELECT o.way, paid.nonce AS paid_nonce, o.tx, taken.nonce AS taken, o.lost_at, o.sent_again_at, o.asked_at, o.second_at
  FROM ${orders} o JOIN ${sessions} s ON s.id = o.session
  LEFT JOIN payment paid ON paid.chain = s.chain AND paid.asset = s.asset AND paid.payer = s.wallet AND paid.nonce = o.nonce AND paid.state <> 'void'
  LEFT JOIN payment taken ON taken.payer = s.wallet AND taken.payment_id = $2 AND taken.state <> 'void'
  WHERE o.session = $1`;

/** SQL condition that the window of the order has ended at $3. */
const WINDOW_OVER = `o.lost_at + interval '${WINDOW_SECONDS} s' <= $3`;

export type LostOrderStore = ReturnType<typeof createLostOrderStore>;

/**
 * Creates the store of the orders whose answers get lost, one per session. Every mark is set once and never removed.
 * @param sessions the table of their sessions
 */
export function createLostOrderStore(pool: pg.Pool, sessions: SessionTable = "test_session") {
  const orders = sessions === "test_session" ? "lost_order" : "rehearsal_lost_order";
  const READ = readFrom(orders, sessions);
  return {
    adding: (session: string, way: Way): Statement => ({
      text: `INSERT INTO ${orders} (session, way) VALUES ($1, $2)`,
      values: [session, way],
    }),

    async of(session: string): Promise<LostOrder> {
      const { rows } = await pool.query<Columns>(READ, [session, paymentIdOf(session)]);
      const [row] = rows;
      if (row === undefined) throw new Error(`the session ${session} has no order whose answer gets lost`);
      const { way, paid_nonce: nonce, tx, taken } = row;
      return {
        way,
        paid: nonce && tx ? { nonce: hex(nonce), transaction: hex(tx) } : null,
        taken: taken && hex(taken),
        lostAt: row.lost_at,
        sentAgainAt: row.sent_again_at,
        askedAt: row.asked_at,
        secondAt: row.second_at,
      };
    },

    /** Returns the write that records its settled payment. */
    settling: (
      session: string,
      { nonce, transaction }: { readonly nonce: Hex; readonly transaction: Hex },
    ): Statement => ({
      text: `UPDATE ${orders} SET nonce = $2, tx = $3 WHERE session = $1`,
      values: [session, bytes(nonce), bytes(transaction)],
    }),

    /** Records that its answer is about to be lost, on the way to this sender. */
    async lose(session: string, { sender, now }: Presented): Promise<void> {
      const text = `UPDATE ${orders} SET lost_at = $2, sender = $3 WHERE session = $1 AND lost_at IS NULL`;
      await pool.query(text, [session, now, sender]);
    },

    /**
     * Records that the same authorization was presented again. Once the session's token is shared, this counts only from
     * the sender who lost the answer, because a settled payment's header can be rebuilt from the chain.
     */
    async sendAgain(session: string, { sender, now }: Presented): Promise<void> {
      const text = `UPDATE ${orders} o SET sent_again_at = $2 FROM ${sessions} s
        WHERE o.session = $1 AND s.id = $1 AND o.lost_at IS NOT NULL AND o.sent_again_at IS NULL AND (NOT s.token_shared OR o.sender = $3)`;
      await pool.query(text, [session, now, sender]);
    },

    /** Records another authorization that does not count as a FAIL. */
    async second(session: string, now: Date): Promise<void> {
      const text = `UPDATE ${orders} SET second_at = $2 WHERE session = $1 AND second_at IS NULL`;
      await pool.query(text, [session, now]);
    },

    /** Returns the session whose lost order this authorization paid, or null. */
    async paidBy(payer: Address, nonce: Hex): Promise<string | null> {
      const text = `SELECT o.session FROM ${orders} o JOIN ${sessions} s ON s.id = o.session WHERE o.nonce = $2 AND s.wallet = $1`;
      const { rows } = await pool.query<{ session: string }>(text, [bytes(payer), bytes(nonce)]);
      return rows[0]?.session ?? null;
    },

    /** Records that someone asked whether it has settled. It counts only from the sender who lost the answer. */
    async ask(session: string, { sender, now }: Presented): Promise<void> {
      const text = `UPDATE ${orders} SET asked_at = $2 WHERE session = $1 AND lost_at IS NOT NULL AND asked_at IS NULL AND sender = $3`;
      await pool.query(text, [session, now, sender]);
    },

    /**
     * Sets the verdict unless there is one. A FAIL must come within the window, and from the sender who lost the answer
     * if the token is shared; a PASS after the window. Returns the number of rows changed (0 or 1).
     */
    async conclude(
      session: string,
      { verdict, sender, now }: { readonly verdict: Result; readonly sender: Sender | null; readonly now: Date },
      transaction: Transaction,
    ): Promise<number> {
      const { rowCount } = await transaction.query(
        `UPDATE ${sessions} s SET verdict = $2, verdict_at = $3 FROM ${orders} o
         WHERE s.id = $1 AND o.session = $1 AND s.verdict IS NULL AND s.lapses_at > $3 AND CASE $2
           WHEN 'fail' THEN NOT coalesce(${WINDOW_OVER}, false) AND (NOT s.token_shared OR o.sender = $4)
           ELSE ${WINDOW_OVER} AND coalesce(o.sent_again_at, o.asked_at) IS NOT NULL AND o.second_at IS NULL END`,
        [session, verdict, now, sender],
      );
      return rowCount ?? 0;
    },
  };
}
