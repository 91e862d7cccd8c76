import type pg from "pg";
import type { Completion, StoredAnswer } from "../../kernel/completion.ts";
import type { PaymentKey } from "../../kernel/route.ts";
import type { Transaction } from "../../kernel/transaction.ts";
import { inTransaction, transactionOn } from "./connection.ts";
import { keyValues, PROGRESS } from "./payment-row.ts";
import type { InTurn } from "./turns.ts";

export interface Completing {
  readonly key: PaymentKey;
  readonly token: string;
  readonly completion: Completion;
}

/** Locks the row while its sale completes: a process that woke up too late finds it gone. */
const HOLD = `SELECT 1 FROM payment
  WHERE chain = $1 AND asset = $2 AND payer = $3 AND nonce = $4 AND lease_token = $5 AND state = 'settled' FOR UPDATE`;

const FULFIL = `UPDATE payment SET state = 'fulfilled', status = $5, response = $6, location = $7,
    lease_until = '-infinity', failures = 0, look_at = now() + interval '2 s', ${PROGRESS}
  WHERE chain = $1 AND asset = $2 AND payer = $3 AND nonce = $4`;

/** One transaction: the row, what the sale records, its answer. Null when another process has taken the row over. */
export const completeSale = (pool: pg.Pool, inTurn: InTurn, completing: Completing): Promise<StoredAnswer | null> => {
  const { queue } = completing.completion;
  const work = (transaction: Transaction) => complete(transaction, completing);
  return queue === undefined ? inTransaction(pool, (client) => work(transactionOn(client))) : inTurn(queue, work);
};

async function complete(
  transaction: Transaction,
  { key, token, completion }: Completing,
): Promise<StoredAnswer | null> {
  const held = await transaction.query(HOLD, [...keyValues(key), token]);
  if (held.rowCount !== 1) return null;
  const answer = await completion.complete(transaction);
  await transaction.query(FULFIL, [...keyValues(key), answer.status, answer.body, answer.location]);
  return answer;
}
