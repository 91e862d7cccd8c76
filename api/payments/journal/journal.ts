import type pg from "pg";
import type { Journal } from "../journal.ts";
import { completeSale } from "./complete-sale.ts";
import { change, inTransaction, named } from "../../platform/db/connection.ts";
import { type EntryColumns, entered, inFlightBefore, takeOf } from "./in-flight.ts";
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
} from "./payment-row.ts";
import { applyWrite, insertOf, keptValues } from "./payment-writes.ts";
import { createResolving } from "./resolving.ts";
import type { Seal } from "../../platform/db/seal.ts";
import { createSharedMessages } from "../../platform/db/shared-messages.ts";
import { createUpkeep } from "./upkeep.ts";

const FIND = `SELECT ${COLUMNS} FROM payment WHERE ${KEY}
  UNION ALL SELECT ${COLUMNS} FROM payment WHERE payer = $3 AND payment_id = $5 AND state <> 'void' AND NOT (${KEY})`;

/**
 * The journal in PostgreSQL. Safety rests on the guards (state and lease token); leases only make duplicate work rare.
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
            `UPDATE payment SET lease_token = $5, lease_until = now() + ${LEASE}, takes = takes + 1
            WHERE ${KEY} AND state = $6 AND lease_until < now()`,
            [...keyValues(key), token, seen],
          ),

    inFlightBefore: (key) => inFlightBefore(share, key),

    // The identifier may belong to another purchase by now, so it stays unset.
    revive: (key, token, kept) =>
      change(
        pool,
        `UPDATE payment SET state = 'settling', reason = NULL, revived = true, excused = false, payment_id = NULL, lease_token = $5, lease_until = now() + ${LEASE}, takes = takes + 1,
          sealed = $6, input = $7, details = $8, ${PROGRESS}
        WHERE ${KEY} AND state = 'void' AND reason IN ('refused', 'reverted')`,
        [...keyValues(key), token, ...keptValues(seal, key, kept)],
      ),

    release: (key, token, failed) =>
      change(
        pool,
        `UPDATE payment SET lease_until = '-infinity', failures = failures + $6, look_at = ${LOOK_LATER.replaceAll("failures", "(failures + $6)")}
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
      const { rows } = await pool.query<{ sealed: Buffer | null }>(
        named(`SELECT sealed FROM payment WHERE ${KEY}`, keyValues(key)),
      );
      const sealed = rows[0]?.sealed;
      return sealed ? seal.open(sealed, sealContext(key)) : null;
    },

    ...createResolving(pool),
    ...createUpkeep(pool),
  };
}
