import type pg from "pg";
import { bytes, hex, inTransaction, named, type Question } from "../../platform/db/connection.ts";
import type { Seal } from "../../platform/db/seal.ts";
import type { Share } from "../../platform/db/shared-messages.ts";
import type { StoredAnswer } from "../../platform/http/answer.ts";
import type { PaymentKey } from "../../platform/http/route.ts";
import type { Lease } from "../../platform/relayer/sender.ts";
import { type Entered, type InFlight, type Kept, MOST_FAILED, MOST_IN_FLIGHT, type NewPayment } from "../journal.ts";
import { signatureSha256 } from "../signature.ts";
import type { Write } from "../step-types.ts";
import { KEY, keyValues, LEASE, lockOrder, progressTo, sealContext } from "./row-store.ts";

/**
 * Wraps a statement that puts a payment in flight. `entry.place` orders the payments of one payer, which enter one at a
 * time. It is null if too many are in flight or too many have failed.
 */
const entry = (statement: string): string => `WITH
  entry AS MATERIALIZED (SELECT place, barred_seconds FROM admit_payment($3::bytea, ${MOST_IN_FLIGHT}, ${MOST_FAILED})),
  entered AS (${statement} RETURNING 1)
  SELECT (SELECT count(*)::int FROM entered) AS rows, place IS NULL AS crowded, barred_seconds FROM entry`;

export interface EntryColumns {
  readonly rows: number;
  readonly crowded: boolean;
  readonly barred_seconds: number | null;
}

export function entered({ rows: [entry] }: pg.QueryResult<EntryColumns>): Entered {
  if (typeof entry?.barred_seconds === "number") return { barredSeconds: entry.barred_seconds };
  return entry?.crowded ? "crowded" : (entry?.rows ?? 0);
}

const TAKE =
  entry(`UPDATE payment SET lease_token = $5, lease_until = now() + ${LEASE}, attempts = attempts + 1, admission_seq = place FROM entry
  WHERE ${KEY} AND state = 'received' AND lease_until < now() AND place IS NOT NULL`);

/** Returns the statement that takes an abandoned payment in received. */
export const takeOf = (key: PaymentKey, token: string): pg.QueryConfig => named(TAKE, [...keyValues(key), token]);

const BEFORE = `SELECT nonce, value FROM payment
  WHERE chain = $1 AND asset = $2 AND payer = $3 AND nonce <> $4
    AND (state = 'settling' OR (state = 'received' AND lease_until > now()))
    AND admission_seq < (SELECT admission_seq FROM payment WHERE ${KEY})`;

export async function inFlightBefore(share: Share, key: PaymentKey): Promise<readonly InFlight[]> {
  const { rows } = await share<{ nonce: Buffer; value: string }>(named(BEFORE, keyValues(key)), lockOrder(key));
  return rows.map(({ nonce, value }) => ({ nonce: hex(nonce), value: BigInt(value) }));
}

type Entry =
  | { readonly state: "received"; readonly token: string; readonly reason?: never; readonly response?: never }
  | { readonly state: "fulfilled"; readonly reason: "bait"; readonly response: StoredAnswer; readonly token?: never };

const KEPT = ["encrypted_signature", "input", "details", "extensions"];
/** Returns the values in the order of `KEPT`. */
export const keptValues = (seal: Seal, key: PaymentKey, { signature, input, details, extensions }: Kept) => [
  seal.seal(signature, sealContext(key)),
  JSON.stringify(input ?? null),
  details === null ? null : JSON.stringify(details),
  extensions === null ? null : JSON.stringify(extensions),
];

const COLUMNS = `chain, asset, payer, nonce, payment_id, digest, signature_sha256, encrypted_signature, valid_after, valid_before, route, fingerprint,
  input, pay_to, value, version, received_at, head_block, state, lease_token, lease_until, attempts, reason, status, response, location, scheme, details, extensions`;
const VALUES = `$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20::uuid,
  CASE WHEN $20::uuid IS NULL THEN '-infinity' ELSE now() + ${LEASE} END, 1, $21, $22, $23, $24, $25, $26, $27`;
const ENTER = entry(
  `INSERT INTO payment (${COLUMNS}, admission_seq) SELECT ${VALUES}, place FROM entry WHERE place IS NOT NULL ON CONFLICT DO NOTHING`,
);

/**
 * Returns the statement for a new row, either held by a run or already over. A payment that was not simulated yet must
 * not take much space.
 */
export function insertOf(seal: Seal, payment: NewPayment, { state, token, reason, response }: Entry) {
  const kept = state === "received" ? [null, null, null, null] : keptValues(seal, payment.key, payment);
  const [sealed, input, details, extensions] = kept;
  return {
    name: state === "received" ? "payment-enter" : "payment-insert",
    text: state === "received" ? ENTER : `INSERT INTO payment (${COLUMNS}) VALUES (${VALUES}) ON CONFLICT DO NOTHING`,
    values: [
      ...keyValues(payment.key),
      payment.paymentId,
      bytes(payment.digest),
      bytes(signatureSha256(payment.signature)),
      sealed,
      payment.validAfter.toString(),
      payment.validBefore.toString(),
      payment.route,
      payment.fingerprint,
      input,
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
      details,
      extensions,
    ],
  };
}

/** A write by the run with this token. */
export interface Change {
  readonly key: PaymentKey;
  readonly token: string;
  readonly write: Write & { readonly kept?: Kept };
}

interface Writing {
  readonly pool: pg.Pool;
  readonly share: Share;
  readonly seal: Seal;
}

/** Applies one guarded UPDATE. The same transaction marks a settlement that moved or was reversed. */
export async function applyWrite({ pool, share, seal }: Writing, change: Change): Promise<number> {
  const { key, write } = change;
  const statement = updateOf(seal, change);
  const moved = write.to === "fulfilled" && write.settlement !== undefined;
  const reversed = write.reason === "reversed";
  if (!moved && !reversed) return (await share(statement, lockOrder(key))).rowCount ?? 0;
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

/** Returns the settlement's place as certified. A reorganization may move the same transaction to another block. */
async function currentPlace(client: pg.PoolClient, key: PaymentKey): Promise<string | null> {
  const { rows } = await client.query<{ tx: Buffer | null; block_number: string }>(
    `SELECT tx, block_number FROM payment WHERE ${KEY} FOR UPDATE`,
    keyValues(key),
  );
  return rows[0]?.tx ? placeOf({ transaction: hex(rows[0].tx), block: rows[0].block_number }) : null;
}

/**
 * The columns that every write to an ended row sets. A fulfilled payment is first checked when its block may be final.
 */
const ENDED = ["lease_until = '-infinity'", "failures = 0", "next_attempt_at = now() + interval '2 s'"];

function updateOf(
  seal: Seal,
  { key, token, write: { from, to, reason, refusal, settlement, final, kept, excused } }: Change,
) {
  const values: unknown[] = [...keyValues(key), token, from, to];
  const isLeaving = to === "settling" && from.includes("received");
  const set = ["state = $7", progressTo("$7")];
  const put = (column: string, value: unknown) => set.push(`${column} = $${values.push(value)}`);
  if (reason !== undefined) put("reason", reason);
  if (refusal !== undefined) put("refusal", JSON.stringify({ ...refusal, error: firstSentence(refusal.error) }));
  if (excused) set.push("excused = true");
  if (settlement !== undefined) {
    put("tx", bytes(settlement.transaction));
    put("block_number", settlement.block);
    put("block_hash", bytes(settlement.blockHash));
    put("log_index", settlement.logIndex);
  }
  if (to === "settling") set.push("tx = NULL", "block_number = NULL", "block_hash = NULL", "log_index = NULL");
  if (kept !== undefined) for (const [at, value] of keptValues(seal, key, kept).entries()) put(KEPT[at] ?? "", value);
  if (to === "void" || to === "received") set.push("lease_token = NULL", ...KEPT.map((column) => `${column} = NULL`));
  if (to === "received") set.push("lease_until = '-infinity'");
  if (final) set.push("encrypted_signature = NULL", "extensions = NULL", "final_at = now()");
  if (to === "fulfilled" || to === "void") set.push(...ENDED);
  const guard = `${KEY} AND lease_token = $5 AND state = ANY($6::text[])${isLeaving ? " AND lease_until > now()" : ""}`;
  return named(`UPDATE payment SET ${set.join(", ")} WHERE ${guard}`, values);
}

/** Shortens a refusal. The first response has the details, and anyone can fill the table with refused payments. */
const firstSentence = (error: string): string =>
  (/^.{1,160}?[.!?](?= |$)/.exec(error)?.[0] ?? error.slice(0, 160)).trim();

/** Asks whether each payment is still to be submitted, by the run that holds this lease. */
export function areHeld(leases: readonly Lease[]): Question<readonly boolean[]> {
  const rows = leases.map(({ key, token }) => [...keyValues(key), token]);
  const columns = [0, 1, 2, 3, 4].map((column) => rows.map((row) => row[column]));
  return {
    statement: { name: "payments-held", text: HELD, values: columns },
    answer: ({ rows }: pg.QueryResult<{ held: boolean }>) => rows.map(({ held }) => held),
  };
}

/**
 * Asks whether each payer has paid here before, on the same chain, and has no payment in the journal that was canceled
 * or failed on the chain. Excused failures count: a payer that moves its money away and back within one block leaves no
 * trace. False for a payment that is not in the journal.
 */
export function haveProved(leases: readonly (Lease | null)[]): Question<readonly boolean[]> {
  const rows = leases.map((lease) => (lease === null ? [0, null] : [keyValues(lease.key)[0], keyValues(lease.key)[2]]));
  const columns = [0, 1].map((column) => rows.map((row) => row[column]));
  return {
    statement: { name: "payers-proved", text: PROVED, values: columns },
    answer: ({ rows }: pg.QueryResult<{ proved: boolean }>) => rows.map(({ proved }) => proved),
  };
}

const HELD = `SELECT EXISTS (SELECT FROM payment
    WHERE payment.chain = lease.chain AND payment.asset = lease.asset AND payment.payer = lease.payer
      AND payment.nonce = lease.nonce AND lease_token = token AND state IN ('settling', 'fulfilled')) AS held
  FROM unnest($1::int[], $2::bytea[], $3::bytea[], $4::bytea[], $5::uuid[])
    WITH ORDINALITY AS lease (chain, asset, payer, nonce, token, place) ORDER BY place`;

const PROVED = `SELECT payer IS NOT NULL
    AND EXISTS (SELECT FROM payment WHERE payment.payer = lease.payer AND payment.chain = lease.chain
      AND state IN ('settled', 'fulfilled') AND tx IS NOT NULL)
    AND NOT EXISTS (SELECT FROM payment WHERE payment.payer = lease.payer
      AND state = 'void' AND reason IN ('reverted', 'nonce_consumed')) AS proved
  FROM unnest($1::int[], $2::bytea[]) WITH ORDINALITY AS lease (chain, payer, place) ORDER BY place`;
