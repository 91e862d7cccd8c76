import pg from "pg";
import type { Completion, KnownCompletion, StoredAnswer, TransactedCompletion } from "../../platform/http/completion.ts";
import type { PaymentKey } from "../../platform/http/route.ts";
import { NotStored } from "../journal.ts";
import type { Settlement } from "../step-types.ts";
import { bytes, inTransaction, isFatal, named, transactionOn } from "../../platform/db/connection.ts";
import type { Question } from "../../platform/db/message.ts";
import { KEY, keyValues, lockOrder, PROGRESS } from "./payment-row.ts";
import type { ShareAll } from "../../platform/db/shared-messages.ts";

export interface Completing<Ending = Completion> {
  readonly key: PaymentKey;
  readonly token: string;
  readonly completion: Ending;
  readonly settlement: Settlement | null;
}

/** What is not stored as settled yet is settled by what is stored with it: its transaction, the sixth value. */
const OWN = `${KEY} AND lease_token = $5 AND (state = 'settled' OR (state = 'settling' AND $6::bytea IS NOT NULL))`;

/** Locks the row while its sale completes: a process that woke up too late finds it gone. */
const HOLD = `SELECT 1 FROM payment WHERE ${OWN} FOR UPDATE`;

/** Fails with `NO_ROW` if another process has taken the row over. */
const FULFIL = `WITH fulfilled AS (UPDATE payment SET state = 'fulfilled', tx = coalesce($6, tx),
    block_number = coalesce($7, block_number), block_hash = coalesce($8, block_hash), log_index = coalesce($9, log_index),
    status = $10, response = $11, location = $12,
    lease_until = '-infinity', failures = 0, look_at = now() + interval '2 s', ${PROGRESS}
    WHERE ${OWN} RETURNING 1)
  SELECT require_rows(count(*), 1) FROM fulfilled`;
const NO_ROW = "P0002";

const transactionOf = ({ settlement }: Completing<unknown>) => settlement && bytes(settlement.transaction);

function fulfil(completing: Completing<unknown>, { status, body, location }: StoredAnswer) {
  const { key, token, settlement } = completing;
  const { block, blockHash, logIndex } = settlement ?? { block: null, blockHash: null, logIndex: null };
  const place = [transactionOf(completing), block, blockHash && bytes(blockHash), logIndex];
  return named(FULFIL, [...keyValues(key), token, ...place, status, body, location]);
}

/**
 * One transaction: the row, what the sale records, its answer. Null when another process has taken the row over. Rejects
 * with `NotStored` when nothing has been stored; after another failure that is unknown.
 */
export const completeSale = (
  { pool, shareAll }: { readonly pool: pg.Pool; readonly shareAll: ShareAll },
  { completion, ...row }: Completing,
): Promise<StoredAnswer | null> =>
  "answer" in completion
    ? completeKnown(shareAll, { ...row, completion })
    : completeTransacted(pool, { ...row, completion });

async function completeKnown(shareAll: ShareAll, known: Completing<KnownCompletion>): Promise<StoredAnswer | null> {
  const { answer, writes } = known.completion;
  try {
    await shareAll(
      [fulfil(known, answer), ...writes.map(({ text, values }) => named(text, values))],
      lockOrder(known.key),
    );
    return answer;
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || isFatal(error)) throw error;
    if (error.code === NO_ROW) return null;
    throw new NotStored("a sale could not be stored", { cause: error });
  }
}

async function completeTransacted(
  pool: pg.Pool,
  transacted: Completing<TransactedCompletion>,
): Promise<StoredAnswer | null> {
  const { completion } = transacted;
  let isUndone = false;
  try {
    return await inTransaction<StoredAnswer | null, readonly [boolean]>(
      pool,
      async (client, [isHeld], last) => {
        if (!isHeld) return null;
        isUndone = true;
        const answer = await completion.complete(transactionOn(client));
        isUndone = false;
        last(fulfil(transacted, answer));
        return answer;
      },
      [hold(transacted)],
    );
  } catch (error) {
    throw isUndone ? new NotStored("a sale could not be completed", { cause: error }) : error;
  }
}

const hold = (completing: Completing<unknown>): Question<boolean> => ({
  statement: named(HOLD, [...keyValues(completing.key), completing.token, transactionOf(completing)]),
  answer: ({ rowCount }) => rowCount === 1,
});
