import type pg from "pg";
import type { EscrowStore, Task } from "../../escrow/escrow-ports.ts";
import type { Decision } from "../../escrow/evaluation.ts";
import type { Hold, PaymentInfo } from "../../escrow/payment.ts";
import { NETWORKS, networkOfChain } from "../../kernel/networks.ts";
import type { Hex } from "../../kernel/wallet.ts";
import { bytes, hex, inTransaction } from "./connection.ts";

/** How long a claimed task is reserved for its worker. */
const TAKEN = "interval '30 s'";

interface Columns {
  payment: Buffer;
  chain: number;
  contract: Buffer;
  info: Record<string, string | number>;
  decision: Decision;
  record: Buffer | null;
  state: Task["state"];
  tx: Buffer | null;
}

const INSERT_TASK = `INSERT INTO escrow_task (payment, chain, contract, info, decision, record) VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT DO NOTHING`;
const taskValues = ({ id, network, contract, info }: Hold, decision: Decision, record: Hex | null) => [
  bytes(id),
  NETWORKS[network].chainId,
  bytes(contract),
  JSON.stringify({ ...info, maxAmount: String(info.maxAmount), salt: String(info.salt) }),
  decision,
  record === null ? null : bytes(record),
];

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
      const { rows } = await pool.query<Columns>("SELECT * FROM escrow_task WHERE payment = $1", [bytes(payment)]);
      return rows[0] ? parse(rows[0]) : null;
    },

    decide: (hold, { payment, decision, rule, record, document }) =>
      inTransaction(pool, async (client) => {
        const { rowCount } = await client.query(INSERT_TASK, taskValues(hold, decision, record));
        if (rowCount === 0) return 0;
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
        return 1;
      }),

    timeOut: async (hold) => (await pool.query(INSERT_TASK, taskValues(hold, "refund", null))).rowCount ?? 0,

    async take(limit) {
      const { rows } = await pool.query<Columns>(
        `UPDATE escrow_task SET look_at = now() + ${TAKEN} WHERE payment IN (
           SELECT payment FROM escrow_task WHERE state <> 'final' AND look_at <= now()
           ORDER BY state = 'mined', look_at LIMIT $1 FOR UPDATE SKIP LOCKED
         ) RETURNING *`,
        [limit],
      );
      return rows.map(parse);
    },

    async note(payment, { state, transaction, seconds }) {
      await pool.query(
        `UPDATE escrow_task SET state = $2, tx = $3, look_at = now() + make_interval(secs => $4) WHERE payment = $1 AND state <> 'final'`,
        [bytes(payment), state, transaction === null ? null : bytes(transaction), seconds],
      );
    },

    async end(payment, decision, transaction) {
      await pool.query(
        "UPDATE escrow_task SET state = 'final', decision = $2, tx = $3 WHERE payment = $1 AND state <> 'final'",
        [bytes(payment), decision, transaction === null ? null : bytes(transaction)],
      );
    },

    async isCarried(transaction) {
      const { rowCount } = await pool.query(
        "SELECT 1 FROM relay WHERE hashes @> ARRAY[$1::bytea] AND state <> 'lost'",
        [bytes(transaction)],
      );
      return rowCount !== 0;
    },
  };
}

function parse({ payment, chain, contract, info, decision, record, state, tx }: Columns): Task {
  const { maxAmount = 0, salt = 0, ...rest } = info;
  return {
    network: networkOfChain(chain),
    contract: hex(contract),
    payment: hex(payment),
    info: { ...rest, maxAmount: BigInt(maxAmount), salt: BigInt(salt) } as PaymentInfo,
    decision,
    record: record && hex(record),
    transaction: tx && hex(tx),
    state,
  };
}
