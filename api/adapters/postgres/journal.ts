import type pg from "pg";
import type { StoredAnswer } from "../../kernel/completion.ts";
import type { PaymentKey } from "../../kernel/route.ts";
import type { Journal, NewPayment } from "../../payments/journal.ts";
import { signatureSha256 } from "../../payments/signature.ts";
import type { Write } from "../../payments/step-types.ts";
import { completeSale } from "./complete-sale.ts";
import { bytes, hex, inTransaction } from "./connection.ts";
import {
  PAYMENT_COLUMNS as COLUMNS,
  keyValues,
  type PaymentColumns,
  parsePayment,
  sealContext,
} from "./payment-row.ts";
import type { Seal } from "./seal.ts";
import { createTurns } from "./turns.ts";

const LEASE = "interval '30 s'";
const KEY = "chain = $1 AND asset = $2 AND payer = $3 AND nonce = $4";
/**
 * When the resolver looks again: soon after a payment arrives, then less and less often; a failing handler backs off
 * faster.
 */
const LOOK_LATER = `now() + CASE WHEN failures > 0 AND state = 'settled' THEN least(interval '1 s' * power(2, least(failures, 12)), interval '1 h')
  WHEN state = 'fulfilled' THEN least(greatest((now() - received_at) / 4, interval '2 s'), interval '1 min')
  ELSE least(greatest((now() - received_at) / 4, interval '2 s'), interval '1 h') END`;
const columns = (rows: readonly (readonly unknown[])[]): unknown[][] =>
  (rows[0] ?? []).map((_, column) => rows.map((row) => row[column]));

/**
 * The journal in PostgreSQL. Safety rests on the guards (state and lease token); leases only make duplicate work rare.
 */
export function createJournal(pool: pg.Pool, seal: Seal): Journal {
  const inTurn = createTurns(pool);
  const change = async (name: string, text: string, values: unknown[]): Promise<number> =>
    (await pool.query({ name, text, values })).rowCount ?? 0;

  return {
    async find(key, paymentId) {
      const { rows } = await pool.query<PaymentColumns>({
        name: "payment-find",
        text: `SELECT ${COLUMNS} FROM payment WHERE ${KEY}
          UNION ALL SELECT ${COLUMNS} FROM payment WHERE payer = $3 AND payment_id = $5 AND state <> 'void' AND NOT (${KEY})`,
        values: [...keyValues(key), paymentId],
      });
      const found = rows.map(parsePayment);
      const row =
        found.find((r) => r.key.nonce === key.nonce && r.key.network === key.network && r.key.asset === key.asset) ??
        null;
      return { row, sameId: row === null ? (found[0] ?? null) : null };
    },

    insert: async (payment, token) =>
      (await pool.query(insertOf(seal, payment, { state: "received", token }))).rowCount ?? 0,

    withhold: (payment, { answer: response, record }) =>
      inTransaction(pool, async (client) => {
        const insert = insertOf(seal, payment, { state: "fulfilled", reason: "bait", response });
        const rows = (await client.query(insert)).rowCount ?? 0;
        if (rows === 1) await record(client);
        return rows;
      }),

    take: (key, seen, token) =>
      change(
        "payment-take",
        `UPDATE payment SET lease_token = $5, lease_until = now() + ${LEASE}, takes = takes + 1
        WHERE ${KEY} AND state = $6 AND lease_until < now()`,
        [...keyValues(key), token, seen],
      ),

    // The identifier may belong to another purchase by now, so it stays unset.
    revive: (key, token) =>
      change(
        "payment-revive",
        `UPDATE payment SET state = 'settling', reason = NULL, payment_id = NULL, lease_token = $5, lease_until = now() + ${LEASE}, takes = takes + 1
        WHERE ${KEY} AND state = 'void' AND reason = 'refused'`,
        [...keyValues(key), token],
      ),

    release: (key, token, failed) =>
      change(
        "payment-release",
        `UPDATE payment SET lease_until = '-infinity', failures = failures + $6, look_at = ${LOOK_LATER.replaceAll("failures", "(failures + $6)")}
        WHERE ${KEY} AND lease_token = $5 AND state <> 'void'`,
        [...keyValues(key), token, failed ? 1 : 0],
      ),

    async postpone(keys) {
      await change(
        "payment-postpone",
        `UPDATE payment SET look_at = ${LOOK_LATER}
        WHERE (chain, asset, payer, nonce) IN (SELECT * FROM unnest($1::int[], $2::bytea[], $3::bytea[], $4::bytea[])) AND state = 'fulfilled'`,
        columns(keys.map(keyValues)),
      );
    },

    finalise: (settled) =>
      change(
        "payment-finalise",
        `UPDATE payment SET final_at = now(), sealed = NULL, lease_token = NULL
        WHERE (chain, asset, payer, nonce, block_hash)
            IN (SELECT * FROM unnest($1::int[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[]))
          AND state = 'fulfilled' AND final_at IS NULL AND lease_until < now()`,
        columns(settled.map(({ key, settlement }) => [...keyValues(key), bytes(settlement.blockHash)])),
      ),

    heartbeat: (key, token) =>
      change(
        "payment-heartbeat",
        `UPDATE payment SET lease_until = now() + ${LEASE}
        WHERE ${KEY} AND state IN ('received', 'settling', 'settled') AND lease_token = $5 AND lease_until > '-infinity'`,
        [...keyValues(key), token],
      ),

    write: (key, token, write) => applyWrite(pool, { key, token, write }),

    complete: (key, token, completion) => completeSale(pool, inTurn, { key, token, completion }),

    async due(limit) {
      const { rows } = await pool.query<PaymentColumns>({
        name: "payment-due",
        text: `SELECT ${COLUMNS} FROM payment
          WHERE (state IN ('settling', 'settled') OR (state = 'fulfilled' AND final_at IS NULL)) AND look_at <= now() AND lease_until < now() AND reason IS NULL
          ORDER BY look_at LIMIT $1`,
        values: [limit],
      });
      return rows.map(parsePayment);
    },

    async signature(key) {
      const { rows } = await pool.query<{ sealed: Buffer | null }>({
        name: "payment-signature",
        text: `SELECT sealed FROM payment WHERE ${KEY}`,
        values: keyValues(key),
      });
      const sealed = rows[0]?.sealed;
      return sealed ? seal.open(sealed, sealContext(key)) : null;
    },

    prune: () =>
      change(
        "payment-prune",
        `DELETE FROM payment WHERE state = 'received' AND lease_until < now() AND valid_before < extract(epoch FROM now()) - 86400`,
        [],
      ),

    async backlog() {
      const { rows } = await pool.query<{ unresolved: number; oldest: number | null }>({
        name: "payment-backlog",
        text: "SELECT count(*)::int AS unresolved, extract(epoch FROM now() - min(received_at))::int AS oldest FROM payment WHERE state IN ('settling', 'settled')",
      });
      return { unresolved: rows[0]?.unresolved ?? 0, oldestSeconds: rows[0]?.oldest ?? null };
    },
  };
}

type Entry =
  | { readonly state: "received"; readonly token: string; readonly reason?: never; readonly response?: never }
  | { readonly state: "fulfilled"; readonly reason: "bait"; readonly response: StoredAnswer; readonly token?: never };

/** A new row, either held by a run or already over. */
function insertOf(seal: Seal, payment: NewPayment, { state, token, reason, response }: Entry) {
  return {
    name: "payment-insert",
    text: `INSERT INTO payment (chain, asset, payer, nonce, payment_id, digest, signature_sha256, sealed, valid_after, valid_before, route, fingerprint,
        input, pay_to, value, version, received_at, head_block, state, lease_token, lease_until, takes, reason, status, response, location, scheme, details)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20::uuid,
        CASE WHEN $20::uuid IS NULL THEN '-infinity' ELSE now() + ${LEASE} END, 1, $21, $22, $23, $24, $25, $26)
      ON CONFLICT DO NOTHING`,
    values: [
      ...keyValues(payment.key),
      payment.paymentId,
      bytes(payment.digest),
      bytes(signatureSha256(payment.signature)),
      seal.seal(payment.signature, sealContext(payment.key)),
      payment.validAfter.toString(),
      payment.validBefore.toString(),
      payment.route,
      payment.fingerprint,
      JSON.stringify(payment.input ?? null),
      bytes(payment.payTo),
      payment.value.toString(),
      payment.version,
      payment.receivedAt,
      payment.headBlock,
      state,
      token ?? null,
      reason ?? null,
      response?.status ?? null,
      response?.body ?? null,
      response?.location ?? null,
      payment.scheme,
      payment.details === null ? null : JSON.stringify(payment.details),
    ],
  };
}

interface Change {
  readonly key: PaymentKey;
  readonly token: string;
  readonly write: Write;
}

/** One guarded UPDATE; the same transaction marks a settlement that moved or was reversed. */
async function applyWrite(pool: pg.Pool, change: Change): Promise<number> {
  const { key, write } = change;
  const statement = updateOf(change);
  const moved = write.to === "fulfilled" && write.settlement !== undefined;
  const reversed = write.reason === "reversed";
  if (!moved && !reversed) return (await pool.query(statement)).rowCount ?? 0;
  return inTransaction(pool, async (client) => {
    const before = moved ? await currentPlace(client, key) : null;
    const rows = (await client.query(statement)).rowCount ?? 0;
    if (rows === 0) return 0;
    if (reversed)
      await client.query(
        "INSERT INTO settlement_mark (chain, asset, payer, nonce, kind) VALUES ($1, $2, $3, $4, 'reversed')",
        keyValues(key),
      );
    if (moved && write.settlement && before !== placeOf(write.settlement)) {
      await client.query(
        "INSERT INTO settlement_mark (chain, asset, payer, nonce, kind, tx, block_number) VALUES ($1, $2, $3, $4, 'moved', $5, $6)",
        [...keyValues(key), bytes(write.settlement.transaction), write.settlement.block],
      );
    }
    return rows;
  });
}

const placeOf = ({ transaction, block }: { transaction: string; block: number | string }): string =>
  `${transaction} in ${block}`;

/** Where the certificate says the settlement is: a reorganization may move the same transaction to another block. */
async function currentPlace(client: pg.PoolClient, key: PaymentKey): Promise<string | null> {
  const { rows } = await client.query<{ tx: Buffer | null; block_number: string }>(
    `SELECT tx, block_number FROM payment WHERE ${KEY} FOR UPDATE`,
    keyValues(key),
  );
  return rows[0]?.tx ? placeOf({ transaction: hex(rows[0].tx), block: rows[0].block_number }) : null;
}

/**
 * What every write to an ended row sets. The first look at a fulfilled payment comes when its block may have become
 * final.
 */
const ENDED = ["lease_until = '-infinity'", "failures = 0", "look_at = now() + interval '2 s'"];

function updateOf({ key, token, write: { from, to, reason, settlement, final } }: Change) {
  const values: unknown[] = [...keyValues(key), token, from, to];
  const set = ["state = $7"];
  const put = (column: string, value: unknown) => set.push(`${column} = $${values.push(value)}`);
  if (reason !== undefined) put("reason", reason);
  if (settlement !== undefined) {
    put("tx", bytes(settlement.transaction));
    put("block_number", settlement.block);
    put("block_hash", bytes(settlement.blockHash));
    put("log_index", settlement.logIndex);
  }
  if (to === "settling") set.push("tx = NULL", "block_number = NULL", "block_hash = NULL", "log_index = NULL");
  if (final || to === "void") set.push("sealed = NULL");
  if (final) set.push("final_at = now()");
  if (to === "fulfilled" || to === "void") set.push(...ENDED);
  return {
    text: `UPDATE payment SET ${set.join(", ")} WHERE ${KEY} AND lease_token = $5 AND state = ANY($6::text[])`,
    values,
  };
}
