import pg from "pg";
import type { Settlement } from "../../platform/chain/view.ts";
import {
  bytes,
  change,
  inTransaction,
  isFatal,
  named,
  type Question,
  transactionOn,
} from "../../platform/db/connection.ts";
import type { Seal } from "../../platform/db/seal.ts";
import { createSharedMessages, type ShareAll } from "../../platform/db/shared-messages.ts";
import type { Completion, KnownCompletion, StoredAnswer, TransactedCompletion } from "../../platform/http/answer.ts";
import type { PaymentKey } from "../../platform/http/route.ts";
import { type Journal, NotStored } from "../journal.ts";
import {
  PAYMENT_COLUMNS as COLUMNS,
  KEY,
  keyValues,
  LEASE,
  LOOK_LATER,
  lockOrder,
  type PaymentColumns,
  PROGRESS,
  parsePayment,
  sealContext,
} from "./row-store.ts";
import { createResolving, createUpkeep } from "./upkeep-store.ts";
import { applyWrite, type EntryColumns, entered, inFlightBefore, insertOf, keptValues, takeOf } from "./write-store.ts";

export interface Completing<Ending = Completion> {
  readonly key: PaymentKey;
  readonly token: string;
  readonly completion: Ending;
  readonly settlement: Settlement | null;
}

/**
 * Matches a settled row, or a settling one whose settlement is stored in the same statement. `$6` is its transaction.
 */
const OWN = `${KEY} AND lease_token = $5 AND (state = 'settled' OR (state = 'settling' AND $6::bytea IS NOT NULL))`;

/** Locks the row while its sale completes. A process whose lease was taken over finds no row. */
const HOLD = `SELECT 1 FROM payment WHERE ${OWN} FOR UPDATE`;

/** Fails with `NO_ROW` if another process has taken the row over. */
const FULFIL = `WITH fulfilled AS (UPDATE payment SET state = 'fulfilled', tx = coalesce($6, tx),
    block_number = coalesce($7, block_number), block_hash = coalesce($8, block_hash), log_index = coalesce($9, log_index),
    status = $10, response = $11, location = $12,
    lease_until = '-infinity', failures = 0, next_attempt_at = now() + interval '2 s', ${PROGRESS}
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
 * Stores the row, the sale's records, and its response in one transaction. Returns null if another process has taken
 * over the row. Rejects with `NotStored` if no part has been stored; after any other failure the outcome is unknown.
 */
const completeSale = (
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

const FIND = `SELECT ${COLUMNS} FROM payment WHERE ${KEY}
  UNION ALL SELECT ${COLUMNS} FROM payment WHERE payer = $3 AND payment_id = $5 AND state <> 'void' AND NOT (${KEY})`;

/**
 * Creates the journal in PostgreSQL. Its safety depends on the guards (state and lease token); leases only make
 * duplicate work rare.
 */
export function createJournal(pool: pg.Pool, seal: Seal): Journal {
  const { share, shareAll } = createSharedMessages(pool);
  return {
    async find(key, paymentId) {
      const { rows } = await share<PaymentColumns>(named(FIND, [...keyValues(key), paymentId]), lockOrder(key));
      const found = rows.map(parsePayment);
      const row =
        found.find((r) => r.key.nonce === key.nonce && r.key.network === key.network && r.key.asset === key.asset) ??
        null;
      return { row, sameId: row === null ? (found[0] ?? null) : null };
    },

    async insert(payment, token) {
      const statement = insertOf(seal, payment, { state: "received", token });
      return entered(await share<EntryColumns>(statement, lockOrder(payment.key)));
    },

    free: (key) =>
      change(pool, `DELETE FROM payment WHERE ${KEY} AND state = 'received' AND lease_until < now()`, keyValues(key)),

    withhold: (payment, { answer: response, record }) =>
      inTransaction(pool, async (client) => {
        const insert = insertOf(seal, payment, { state: "fulfilled", reason: "bait", response });
        const rows = (await client.query(insert)).rowCount ?? 0;
        if (rows === 1) await record(client);
        return rows;
      }),

    take: (key, seen, token) =>
      seen === "received"
        ? pool.query<EntryColumns>(takeOf(key, token)).then(entered)
        : change(
            pool,
            `UPDATE payment SET lease_token = $5, lease_until = now() + ${LEASE}, attempts = attempts + 1
            WHERE ${KEY} AND state = $6 AND lease_until < now()`,
            [...keyValues(key), token, seen],
          ),

    inFlightBefore: (key) => inFlightBefore(share, key),

    // Another purchase may use the identifier by now, so it stays unset.
    revive: (key, token, kept) =>
      change(
        pool,
        `UPDATE payment SET state = 'settling', reason = NULL, refusal = NULL, revived = true, excused = false, payment_id = NULL, lease_token = $5, lease_until = now() + ${LEASE}, attempts = attempts + 1,
          encrypted_signature = $6, input = $7, details = $8, extensions = $9, ${PROGRESS}
        WHERE ${KEY} AND state = 'void' AND reason IN ('refused', 'reverted')`,
        [...keyValues(key), token, ...keptValues(seal, key, kept)],
      ),

    release: (key, token, failed) =>
      change(
        pool,
        `UPDATE payment SET lease_until = '-infinity', failures = failures + $6, next_attempt_at = ${LOOK_LATER.replaceAll("failures", "(failures + $6)")}
        WHERE ${KEY} AND lease_token = $5 AND state <> 'void'`,
        [...keyValues(key), token, failed ? 1 : 0],
      ),

    heartbeat: (key, token) =>
      change(
        pool,
        `UPDATE payment SET lease_until = now() + ${LEASE}
        WHERE ${KEY} AND state IN ('received', 'settling', 'settled') AND lease_token = $5
          AND lease_until > CASE state WHEN 'received' THEN now() ELSE '-infinity' END`,
        [...keyValues(key), token],
      ),

    write: (key, token, write) => applyWrite({ pool, share, seal }, { key, token, write }),

    complete: (key, token, ended) => completeSale({ pool, shareAll }, { key, token, ...ended }),

    async signature(key) {
      const { rows } = await pool.query<{ encrypted_signature: Buffer | null }>(
        named(`SELECT encrypted_signature FROM payment WHERE ${KEY}`, keyValues(key)),
      );
      const sealed = rows[0]?.encrypted_signature;
      return sealed ? seal.open(sealed, sealContext(key)) : null;
    },

    ...createResolving(pool),
    ...createUpkeep(pool),
  };
}
