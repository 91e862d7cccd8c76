import type pg from "pg";
import type { Transfer } from "../../platform/chain/usdc.ts";
import { bytes, hex, inTransaction } from "../../platform/db/connection.ts";
import { NETWORKS, type Network } from "../../platform/networks.ts";
import type { Address } from "../../platform/wallet.ts";
import { BAITED_KINDS } from "../kinds/index.ts";
import { decoyNames } from "../sessions/session.ts";
import { LEAST_REFUND, REFUNDS_A_DAY, REFUNDS_A_PASS, ZERO_ADDRESS } from "./refund.ts";

interface DebtColumns {
  decoy: Buffer;
  sender: Buffer;
  session: string;
  received: string;
  returned: string;
  pending_value: string | null;
  pending_before: string | null;
  attempts: number;
}

/** The tests whose decoys are public. */
const DECOYED = BAITED_KINDS.flatMap(({ product, bait }) => (bait.to === "decoy" ? [product] : []));

/** Adds new transfers to the books of their decoy and sender. A final refund makes room for the next one. */
const RECORD = `WITH added AS (
    INSERT INTO decoy_transfer (chain, tx, log_index, decoy, other, value, outgoing, block_number)
    SELECT $1, tx, log_index, decoy, other, value, outgoing, block_number
      FROM unnest($2::bytea[], $3::int[], $4::bytea[], $5::bytea[], $6::numeric[], $7::boolean[], $8::bigint[])
        AS t(tx, log_index, decoy, other, value, outgoing, block_number)
    ON CONFLICT DO NOTHING RETURNING tx, log_index, decoy, other, value, outgoing),
  sums AS (
    SELECT decoy, other, coalesce(sum(value) FILTER (WHERE NOT outgoing), 0) AS received,
      coalesce(sum(value) FILTER (WHERE outgoing), 0) AS returned FROM added GROUP BY decoy, other),
  booked AS (
    INSERT INTO decoy_debt AS d (chain, decoy, sender, session, received, returned, since, due_at)
    SELECT $1, decoy, other, s.session, received, returned, $11, $11 FROM sums
      JOIN (SELECT DISTINCT * FROM unnest($9::bytea[], $10::text[])) AS s(decoy, session) USING (decoy)
    ON CONFLICT (chain, decoy, sender) DO UPDATE SET
      received = d.received + excluded.received,
      returned = d.returned + excluded.returned,
      pending_value = CASE WHEN excluded.returned = 0 THEN d.pending_value END,
      pending_before = CASE WHEN excluded.returned = 0 THEN d.pending_before END,
      attempts = CASE WHEN excluded.returned = 0 THEN d.attempts ELSE 0 END,
      since = CASE WHEN d.owed > 0 AND excluded.returned = 0 THEN d.since ELSE excluded.since END,
      due_at = CASE WHEN d.owed > 0 AND excluded.returned = 0 THEN d.due_at ELSE excluded.due_at END)
  SELECT tx, log_index FROM added`;

/**
 * Selects the oldest debts first. Each sender gets one refund per day, and all senders together a limited number. A
 * pending refund may be submitted again.
 */
const DUE = `UPDATE decoy_debt SET attempts = attempts + 1,
    due_at = $2::timestamptz + least(interval '20 minutes' * power(2, least(attempts, 10)), interval '7 days')
  WHERE (chain, decoy, sender) IN (
    SELECT chain, decoy, sender FROM decoy_debt d
    WHERE chain = $1 AND owed > 0 AND owed >= $3 AND due_at <= $2 AND sender <> $6
      AND (pending_value IS NOT NULL OR NOT EXISTS (
        SELECT FROM decoy_debt o WHERE o.sender = d.sender AND (o.submitted_at > $2::timestamptz - interval '1 day'
          OR o.owed >= $3 AND o.due_at <= $2 AND (o.since, o.chain, o.decoy) < (d.since, d.chain, d.decoy))))
    ORDER BY since, decoy
    LIMIT greatest(0, least($4, $5 - (SELECT count(*) FROM decoy_debt WHERE submitted_at > $2::timestamptz - interval '1 day')))
    FOR UPDATE SKIP LOCKED)
  RETURNING decoy, sender, session, received, returned, pending_value, pending_before, attempts - 1 AS attempts`;

export type DecoyStore = ReturnType<typeof createDecoyStore>;

/** Creates the store of what decoys received and returned on one network. Times are the caller's. */
export function createDecoyStore(pool: pg.Pool, network: Network) {
  const { chainId } = NETWORKS[network];
  const keyOf = ({ decoy, sender }: Debt) => [chainId, bytes(decoy), bytes(sender)];
  return {
    /** Returns the block to read from to the one caller that may do this pass, and null to every other until `next`. */
    async claim(now: Date, next: Date): Promise<number | null> {
      const { rows } = await pool.query<{ next_block: string }>(
        `INSERT INTO decoy_watch AS w (chain, due_at) VALUES ($1, $3)
         ON CONFLICT (chain) DO UPDATE SET due_at = $3 WHERE w.due_at <= $2 RETURNING next_block`,
        [chainId, now, next],
      );
      return rows[0] ? Number(rows[0].next_block) : null;
    },

    /** Returns the decoys of sessions started after `since`, and those with a pending refund. */
    async watched(since: Date): Promise<readonly DecoyOf[]> {
      const { rows } = await pool.query<{
        id: string;
        decoy: Buffer;
        wallet_decoy: Buffer;
        block_number: string;
      }>(`SELECT id, decoy, wallet_decoy, block_number FROM test_session WHERE product = ANY($2) AND started_at > $1`, [
        since,
        DECOYED,
      ]);
      const open = await pool.query<{ session: string; decoy: Buffer }>(
        "SELECT session, decoy FROM decoy_debt WHERE chain = $1 AND pending_value IS NOT NULL",
        [chainId],
      );
      const found = open.rows.map((row): DecoyOf => decoyOf(row.session, row.decoy, null));
      for (const { id, decoy, wallet_decoy, block_number } of rows) {
        const names = decoyNames(id);
        found.push(decoyOf(names.token, decoy, Number(block_number)));
        found.push(decoyOf(names.wallet, wallet_decoy, Number(block_number)));
      }
      return [...new Map(found.map((decoy) => [decoy.address, decoy])).values()];
    },

    /**
     * Adds new entries and moves the position in one transaction. Returns the entries that are new, or null if another
     * caller has moved the position.
     */
    record: (
      entries: readonly Entry[],
      { from, to, now }: { readonly from: number; readonly to: number; readonly now: Date },
    ): Promise<readonly Entry[] | null> =>
      inTransaction(pool, async (client) => {
        const { rowCount } = await client.query(
          "UPDATE decoy_watch SET next_block = $3 WHERE chain = $1 AND next_block = $2",
          [chainId, from, to],
        );
        if (rowCount !== 1) return null;
        if (entries.length === 0) return [];
        const { rows } = await client.query<{ tx: Buffer; log_index: number }>(RECORD, [
          chainId,
          ...columnsOf(entries),
          now,
        ]);
        const added = new Set(rows.map(({ tx, log_index }) => `${hex(tx)}|${log_index}`));
        return entries.filter(({ transaction, logIndex }) => added.has(`${transaction}|${logIndex}`));
      }),

    /** Claims debts that are due, those waiting longest first. Each is due again later, with increasing delays. */
    async due(now: Date): Promise<readonly Debt[]> {
      const values = [chainId, now, LEAST_REFUND.toString(), REFUNDS_A_PASS, REFUNDS_A_DAY, bytes(ZERO_ADDRESS)];
      return (await pool.query<DebtColumns>(DUE, values)).rows.map(parse);
    },

    /** Records a refund before it is signed. Returns false if the debt has changed. */
    async pend(debt: Debt, { value, validBefore }: Pending): Promise<boolean> {
      const { rowCount } = await pool.query(
        `UPDATE decoy_debt SET pending_value = $5, pending_before = $6
         WHERE chain = $1 AND decoy = $2 AND sender = $3 AND returned = $4 AND pending_before IS NOT DISTINCT FROM $7`,
        [
          ...keyOf(debt),
          debt.returned.toString(),
          value.toString(),
          validBefore.toString(),
          debt.pending?.validBefore.toString() ?? null,
        ],
      );
      return rowCount === 1;
    },

    /** Records that a refund is about to be submitted. */
    async submitting(debt: Debt, now: Date): Promise<void> {
      const text = "UPDATE decoy_debt SET submitted_at = $4 WHERE chain = $1 AND decoy = $2 AND sender = $3";
      await pool.query(text, [...keyOf(debt), now]);
    },
  };
}

const decoyOf = (session: string, address: Buffer, fromBlock: number | null): DecoyOf => ({
  session,
  address: hex(address),
  fromBlock,
});

const columnsOf = (entries: readonly Entry[]): readonly unknown[][] => [
  entries.map(({ transaction }) => bytes(transaction)),
  entries.map(({ logIndex }) => logIndex),
  entries.map(({ decoy }) => bytes(decoy)),
  entries.map(({ other }) => bytes(other)),
  entries.map(({ value }) => value.toString()),
  entries.map(({ outgoing }) => outgoing),
  entries.map(({ block }) => block),
  entries.map(({ decoy }) => bytes(decoy)),
  entries.map(({ session }) => session),
];

const parse = ({ decoy, sender, session, attempts, ...c }: DebtColumns): Debt => ({
  decoy: hex(decoy),
  session,
  sender: hex(sender),
  received: BigInt(c.received),
  returned: BigInt(c.returned),
  pending:
    c.pending_value === null || c.pending_before === null
      ? null
      : { value: BigInt(c.pending_value), validBefore: BigInt(c.pending_before) },
  attempts,
});

export interface DecoyOf {
  /** One of the session's `decoyNames`. */
  readonly session: string;
  readonly address: Address;
  /** The block of the session's entry, before which the address was secret. Null once all of it has been read. */
  readonly fromBlock: number | null;
}

/** A transfer in a decoy's books: to the decoy, or from it back to a sender. */
export interface Entry extends Pick<Transfer, "value" | "block" | "transaction" | "logIndex"> {
  readonly decoy: Address;
  readonly session: string;
  readonly other: Address;
  readonly outgoing: boolean;
}

/** The totals that one sender has sent to one decoy and received back, in final blocks. Amounts in atomic units. */
export interface Debt {
  readonly decoy: Address;
  readonly session: string;
  readonly sender: Address;
  readonly received: bigint;
  readonly returned: bigint;
  /** The last refund signed, if it is not in a final block yet. */
  readonly pending: Pending | null;
  readonly attempts: number;
}

/** An authorization's terms. `validBefore` is in Unix seconds. */
export interface Pending {
  readonly value: bigint;
  readonly validBefore: bigint;
}
