import type pg from "pg";
import type { ContestWindow } from "../../escrow/contest/contest-ports.ts";
import type { Cost, EscrowStore, Stored } from "../../escrow/escrow-ports.ts";
import type { Decision } from "../../escrow/evaluation.ts";
import type { Hold } from "../../escrow/payment.ts";
import { NETWORKS } from "../../kernel/networks.ts";
import type { Hex } from "../../kernel/wallet.ts";
import { bytes, hex, inTransaction } from "./connection.ts";
import { charge } from "./escrow-gas.ts";
import { parseTask, type TaskColumns } from "./escrow-task.ts";

/** How long a claimed task is reserved for its worker. */
const TAKEN = "interval '30 s'";

interface BlockColumns {
  block_number: string;
  block_hash: Buffer;
}

const INSERT_TASK = `INSERT INTO escrow_task (payment, chain, contract, info, decision, record, merchant, amount, contest_until)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`;
const taskValues = (
  { id, network, contract, info }: Hold,
  {
    decision,
    record,
    until,
  }: { readonly decision: Decision; readonly record: Hex | null; readonly until: number | null },
) => [
  bytes(id),
  NETWORKS[network].chainId,
  bytes(contract),
  JSON.stringify({ ...info, maxAmount: String(info.maxAmount), salt: String(info.salt) }),
  decision,
  record === null ? null : bytes(record),
  bytes(info.receiver),
  String(info.maxAmount),
  until,
];

const CLOSE_WINDOW = `UPDATE escrow_task SET contest_until = NULL
  WHERE payment = $1 AND state = 'open' AND contest_until IS NOT NULL RETURNING merchant`;
const INSERT_WINDOW = `INSERT INTO escrow_window (payment, seconds, until, conditions, promised, delivered)
  VALUES ($1, $2, $3, $4, $5, $6)`;
const windowValues = (payment: Hex, { seconds, until, conditions, promised, delivered }: ContestWindow) => [
  bytes(payment),
  seconds,
  until,
  ...[conditions, promised, delivered].map((part) => JSON.stringify(part)),
];

/** The account of holds that nobody decided, whose parties anybody can make up. */
const NOBODY = Buffer.alloc(20);

class Spent extends Error {}

/** Stores what belongs to an outcome and charges for it, all or nothing. */
async function stored(
  pool: pg.Pool,
  { account, ...cost }: Cost & { readonly account: Buffer },
  store: (client: pg.PoolClient) => Promise<boolean>,
): Promise<Stored> {
  const work = async (client: pg.PoolClient): Promise<Stored> => {
    if (!(await store(client))) return "taken";
    if (!(await charge(client, account, cost))) throw new Spent();
    return "stored";
  };
  return inTransaction(pool, work).catch((error: unknown) => {
    if (error instanceof Spent) return "spent";
    throw error;
  });
}

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

/**
 * Evaluations, kept permanently, and what should happen on chain. A payment has one task, so both outcomes are never
 * requested.
 */
export function createEscrowStore(pool: pg.Pool): EscrowStore {
  return {
    async evaluation(payment) {
      const { rows } = await pool.query<{ decision: Decision; rule: string; record: Buffer; document: string }>(
        "SELECT decision, rule, record, document FROM escrow_evaluation WHERE payment = $1",
        [bytes(payment)],
      );
      const [row] = rows;
      return row === undefined ? null : { ...row, payment, record: hex(row.record) };
    },

    async task(payment) {
      const { rows } = await pool.query<TaskColumns>("SELECT * FROM escrow_task WHERE payment = $1", [bytes(payment)]);
      return rows[0] ? parseTask(rows[0]) : null;
    },

    decide: (hold, { payment, decision, rule, record, document }, { told, window, ...cost }) =>
      stored(pool, { ...cost, account: bytes(hold.info.receiver) }, async (client) => {
        const { rowCount } = await client.query(
          INSERT_TASK,
          taskValues(hold, { decision, record: told, until: window?.until ?? null }),
        );
        if (rowCount === 0) return false;
        if (window !== null) await client.query(INSERT_WINDOW, windowValues(payment, window));
        await client.query(
          `INSERT INTO escrow_evaluation (payment, chain, contract, payer, merchant, decision, rule, record, document)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
          [
            bytes(payment),
            NETWORKS[hold.network].chainId,
            bytes(hold.contract),
            bytes(hold.info.payer),
            bytes(hold.info.receiver),
            decision,
            rule,
            bytes(record),
            document,
          ],
        );
        return true;
      }),

    timeOut: (hold, cost) =>
      stored(pool, { ...cost, account: NOBODY }, async (client) => {
        const { rowCount } = await client.query(
          INSERT_TASK,
          taskValues(hold, { decision: "refund", record: null, until: null }),
        );
        return rowCount === 1;
      }),

    async take(limit) {
      const { rows } = await pool.query<TaskColumns>(TAKE, [limit]);
      return rows.map(parseTask);
    },

    async lookAgain({ payment, contestUntil }, seconds) {
      await pool.query(
        `UPDATE escrow_task SET look_at = now() + make_interval(secs => $2)
         WHERE payment = $1 AND state = 'open' AND contest_until IS NOT DISTINCT FROM $3`,
        [bytes(payment), seconds, contestUntil],
      );
    },

    closeWindow: (payment, gas) =>
      inTransaction(pool, async (client) => {
        const { rows } = await client.query<{ merchant: Buffer }>(CLOSE_WINDOW, [bytes(payment)]);
        const [closed] = rows;
        return closed !== undefined && charge(client, closed.merchant, { gas: -gas, most: 0n });
      }),

    async mined(payment, { decision, transaction, block, blockHash }) {
      await pool.query(
        `UPDATE escrow_task SET state = 'mined', found = $2, tx = $3, block_number = $4, block_hash = $5, look_at = now()
         WHERE payment = $1 AND state = 'open'`,
        [bytes(payment), decision, bytes(transaction), block, bytes(blockHash)],
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
