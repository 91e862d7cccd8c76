import type pg from "pg";
import type { EscrowStore } from "./escrow-ports.ts";
import type { Decision } from "./evaluation.ts";
import type { Hex } from "../platform/wallet.ts";
import { bytes, hex, inTransaction, named } from "../platform/db/connection.ts";
import { createDecisions } from "./decisions.ts";
import { accountOrder, giveBack, MINED, NOBODY } from "./gas.ts";
import { parseTask, type TaskColumns, WAITING } from "./task.ts";
import { createSharedMessages } from "../platform/db/shared-messages.ts";

/** How long a claimed task is reserved for its worker. */
const TAKEN = "interval '30 s'";

/** An evaluation beside its task; null without one. */
interface EvaluationColumns {
  readonly evaluated: Decision | null;
  readonly rule: string;
  readonly evaluation_record: Buffer;
  readonly document: string;
}

interface BlockColumns {
  block_number: string;
  block_hash: Buffer;
}

const CONTESTED = "SELECT FROM escrow_contest WHERE payment = $1 AND is_open";
const CLOSE_WINDOW = "UPDATE escrow_task SET contest_until = NULL WHERE payment = $1";
/** In nobody's name: the record says nothing about the merchant. */
const GIVE_UP = `UPDATE escrow_task SET decision = 'refund', record = NULL, gas = 0, contest_until = NULL
  WHERE payment = $1`;

/**
 * The most valuable and the oldest due tasks, so that the work is bounded. Value times age is what waiting costs; a
 * merchant's second counts half, its third a third.
 */
const CANDIDATES = 1_000;
const candidates = (order: string) => `(SELECT payment, merchant, amount, created_at FROM escrow_task
  WHERE state = 'open' AND look_at <= now() ORDER BY ${order} LIMIT ${CANDIDATES})`;
const TAKE = `UPDATE escrow_task SET look_at = now() + ${TAKEN} WHERE payment IN (
  SELECT payment FROM escrow_task JOIN (
    SELECT payment, (amount + 1) * (1 + extract(epoch FROM now() - created_at))
      / row_number() OVER (PARTITION BY merchant ORDER BY amount DESC, created_at) AS weight
    FROM (${candidates("amount DESC")} UNION ${candidates("look_at")}) AS due
  ) AS weighed USING (payment)
  WHERE state = 'open' AND look_at <= now() ORDER BY weight DESC LIMIT $1 FOR UPDATE OF escrow_task SKIP LOCKED
) RETURNING *`;

/** No evaluation is without its task. */
const DECIDED = `SELECT task.*, evaluation.decision AS evaluated, rule, evaluation.record AS evaluation_record, document
  FROM escrow_task AS task LEFT JOIN escrow_evaluation AS evaluation USING (payment) WHERE task.payment = $1`;
const LOOK_AGAIN = `UPDATE escrow_task SET look_at = now() + make_interval(secs => $2)
  WHERE payment = $1 AND state = 'open' AND contest_until IS NOT DISTINCT FROM $3`;

/** Statements that only read, in any order. */
const UNLOCKED = "";
/** Tasks are locked in this order, after the accounts of decisions. */
const taskOrder = (payment: Hex): string => `task ${payment}`;

/**
 * Evaluations, kept permanently, and what should happen on chain. A payment has one task, so both outcomes are never
 * requested.
 */
export function createEscrowStore(pool: pg.Pool): EscrowStore {
  const { share: read } = createSharedMessages(pool);
  const { share: write } = createSharedMessages(pool);
  return {
    async decided(payment) {
      const { rows } = await read<TaskColumns & EvaluationColumns>(named(DECIDED, [bytes(payment)]), UNLOCKED);
      const [row] = rows;
      if (row === undefined) return { evaluation: null, task: null };
      const { evaluated: decision, rule, evaluation_record: record, document } = row;
      const evaluation = decision === null ? null : { payment, decision, rule, record: hex(record), document };
      return { evaluation, task: parseTask(row) };
    },

    ...createDecisions(write),

    async take(limit) {
      const { rows } = await pool.query<TaskColumns>(named(TAKE, [limit]));
      return rows.map(parseTask);
    },

    async lookAgain({ payment, contestUntil }, seconds) {
      await write(named(LOOK_AGAIN, [bytes(payment), seconds, contestUntil]), taskOrder(payment));
    },

    closeWindow: (payment, { isRefundable, gas }) =>
      inTransaction(pool, async (client) => {
        const id = bytes(payment);
        // Contests lock the task, too, so that none comes between the next two statements.
        if ((await client.query(WAITING, [id])).rowCount === 0) return null;
        const isContested = (await client.query(CONTESTED, [id])).rowCount !== 0;
        if (isContested && !isRefundable) return "contested";
        await client.query(isContested ? GIVE_UP : CLOSE_WINDOW, [id]);
        if (!isContested) return "release";
        await giveBack(client, id, gas);
        return "refund";
      }),

    async mined({ payment, record, info }, { decision, transaction, block, blockHash, gas }) {
      const account = record === null ? NOBODY : bytes(info.receiver);
      const ended = [bytes(payment), decision, bytes(transaction), block, bytes(blockHash)];
      await write(
        named(MINED, [...ended, account, gas === null ? null : String(gas)]),
        accountOrder(account, bytes(payment)),
      );
    },

    ...watching(pool),
  };
}

/** Mined tasks, by the block that shows their outcomes. */
const watching = (pool: pg.Pool): Pick<EscrowStore, "hasMined" | "blocks" | "wait" | "finish" | "reopen"> => ({
  async hasMined() {
    const { rows } = await pool.query("SELECT EXISTS (SELECT FROM escrow_task WHERE state = 'mined') AS mined");
    return rows[0]?.mined === true;
  },

  async blocks(final, limit) {
    const { rows } = await pool.query<BlockColumns>(
      `SELECT block_number, block_hash FROM escrow_task WHERE state = 'mined'
       AND (look_at <= now() OR block_number <= $1)
       GROUP BY block_number, block_hash ORDER BY block_number LIMIT $2`,
      [final, limit],
    );
    return rows.map(({ block_number, block_hash }) => ({ block: Number(block_number), blockHash: hex(block_hash) }));
  },

  async wait(blocks, seconds) {
    await pool.query(
      `UPDATE escrow_task SET look_at = now() + make_interval(secs => $2)
       WHERE state = 'mined' AND block_hash = ANY($1) AND look_at <= now()`,
      [blocks.map(({ blockHash }) => bytes(blockHash)), seconds],
    );
  },

  async finish({ blockHash }) {
    const { rows } = await pool.query<Pick<TaskColumns, "payment" | "decision" | "found">>(
      `WITH over AS (SELECT payment, decision FROM escrow_task WHERE state = 'mined' AND block_hash = $1 FOR UPDATE)
       UPDATE escrow_task AS task SET state = 'final', decision = found FROM over WHERE task.payment = over.payment
       RETURNING over.payment, over.decision, task.found`,
      [bytes(blockHash)],
    );
    return rows
      .filter(({ decision, found }) => decision !== found)
      .map(({ payment, decision, found }) => ({ payment: hex(payment), decision, found }));
  },

  async reopen({ blockHash }) {
    await pool.query(
      `UPDATE escrow_task SET state = 'open', found = NULL, tx = NULL, block_number = NULL, block_hash = NULL,
         look_at = now() WHERE state = 'mined' AND block_hash = $1`,
      [bytes(blockHash)],
    );
  },
});
