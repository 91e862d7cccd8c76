import type pg from "pg";
import { WINDOW_MARGIN_SECONDS } from "../chain/authorization.ts";
import { bytes, hex, type Question } from "../db/connection.ts";
import type { Address, Hex } from "../wallet.ts";
import type { Lane } from "./places.ts";

/** One account on one chain, as in a table row. */
export interface Account {
  readonly chainId: number;
  readonly address: Address;
}

/** Returns the context to which a stored transaction is bound. */
export const sealContext = ({ chainId, address }: Account, nonce: number | string): string =>
  `${chainId}|${address}|${nonce}`;

/** A transaction that is in no known block, and whose nonce no other transaction is known to have used. */
export interface Unmined {
  readonly id: string;
  readonly nonce: string;
  readonly hashes: readonly Buffer[];
  readonly raw: Buffer;
  /** In wei per gas. */
  readonly maxFee: string;
  /** The time since it was last broadcast or looked for, in milliseconds. */
  readonly tendedMs: number;
}

export interface Block {
  readonly number: bigint;
  readonly hash: Hex;
}

export interface Mined {
  readonly hash: Hex;
  readonly block: bigint;
  readonly blockHash: Hex;
  readonly reverted: boolean;
  /** The positions, counted from 1, of the purposes that it did not serve. */
  readonly failed: readonly number[];
  /** The only purposes that it served, for transactions whose events show that; null otherwise. */
  readonly served: readonly Hex[] | null;
  /** Its cost. */
  readonly feeWei: bigint;
}

export interface NewTransaction {
  readonly lane: Lane;
  readonly nonce: number;
  /** In the order of its calls. */
  readonly purposes: readonly Hex[];
  readonly hash: Hex;
  readonly raw: Buffer;
  readonly gas: bigint;
  readonly maxFee: bigint;
}

/** The number of a transaction's purposes, and of those that it did not serve. */
interface Purposes {
  readonly all: number;
  readonly failed: number;
}

export type Ledger = ReturnType<typeof createLedger>;

/** Creates access to one account's rows of the table `relay`. */
export function createLedger(pool: pg.Pool, { chainId, address }: Account) {
  const account = [chainId, bytes(address)] as const;
  return {
    ...sending(account),
    ...upkeep(pool, account),
    ...outcomes(pool, chainId),
  };
}

/** The account's unmined transactions. */
export interface UnminedOfAccount {
  /** The lowest nonce not used on the chain or by our own transactions, even if the chain's count lags. */
  readonly nextNonce: number;
  /** The number with a nonce below it. Those above wait for the next one, so it never waits for them. */
  readonly count: number;
  /** The number of these in the lane. */
  readonly inLane: number;
  /** The maximum cost of all of them, in wei and in gas. */
  readonly wei: bigint;
  readonly gas: bigint;
  /** The cost of the lane's failed payments within a day, in wei. */
  readonly lostWei: bigint;
}

type AccountValues = readonly [number, Buffer];

const OWN = "chain = $1 AND sender = $2";

/** The account's next nonce. $3 is the chain's count. */
const NEXT = `CASE WHEN EXISTS (SELECT FROM relay WHERE ${OWN} AND nonce = $3) THEN (
    SELECT nonce + 1 FROM relay AS taken WHERE ${OWN} AND nonce >= $3 AND NOT EXISTS (
      SELECT FROM relay WHERE ${OWN} AND nonce = taken.nonce + 1)
    ORDER BY nonce LIMIT 1) ELSE $3 END`;

function sending(account: AccountValues) {
  return {
    /** Serializes the account's senders until the end of the transaction. */
    lock: (): Question<null> => ({
      statement: {
        name: "relay-lock",
        text: "SELECT pg_advisory_xact_lock($1, hashtext($2))",
        values: [account[0], hex(account[1])],
      },
      answer: () => null,
    }),

    /** Returns the unmined transactions at a chain's count of at least `count`, and the lane's losses to failures. */
    unminedIn: (lane: Lane, count: number): Question<UnminedOfAccount> => ({
      statement: {
        name: "relay-unmined-in",
        text: `WITH next AS MATERIALIZED (SELECT ${NEXT} AS nonce)
          SELECT (SELECT nonce FROM next) AS "nextNonce",
            count(*) FILTER (WHERE nonce < (SELECT nonce FROM next)) AS count,
            count(*) FILTER (WHERE nonce < (SELECT nonce FROM next) AND lane = $4) AS "inLane",
            coalesce(sum(gas * max_fee), 0) AS wei, coalesce(sum(gas), 0) AS gas,
            (SELECT coalesce(sum(lost_wei), 0) FROM relay
              WHERE ${OWN} AND lane = $4 AND lost_wei > 0 AND created_at > now() - interval '1 day') AS "lostWei"
          FROM relay WHERE ${OWN} AND state = 'sent' AND nonce >= $3`,
        values: [...account, count, lane],
      },
      answer: ({ rows: [row] }: pg.QueryResult<Record<keyof UnminedOfAccount, string>>) => ({
        nextNonce: Number(row?.nextNonce ?? count),
        count: Number(row?.count),
        inLane: Number(row?.inLane),
        wei: BigInt(row?.wei ?? 0),
        gas: BigInt(row?.gas ?? 0),
        lostWei: BigInt(row?.lostWei ?? 0),
      }),
    }),

    /** Returns the insert, which fails if another account has sent one of the purposes. */
    insert({ lane, nonce, purposes, hash, raw, gas, maxFee }: NewTransaction): pg.QueryConfig {
      return {
        name: "relay-insert",
        text: `WITH sent AS (INSERT INTO relay (chain, sender, nonce, purposes, hashes, raw, gas, max_fee, lane)
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id, chain, purposes),
            members AS (INSERT INTO relay_member (chain, purpose, relay_id) SELECT chain, unnest(purposes), id FROM sent
              ON CONFLICT (chain, purpose) DO UPDATE SET relay_id = excluded.relay_id
              WHERE (SELECT state FROM relay WHERE id = relay_member.relay_id) = 'lost' RETURNING 1)
          SELECT require_rows(count(*), cardinality($4)) FROM members`,
        values: [...account, nonce, purposes.map(bytes), [bytes(hash)], raw, gas.toString(), maxFee.toString(), lane],
      };
    },
  };
}

const AGE_MS = (column: string) => `(extract(epoch FROM now() - ${column}) * 1000)::float8`;
const UNMINED = `SELECT id, nonce, hashes, raw, max_fee AS "maxFee", ${AGE_MS("tended_at")} AS "tendedMs" FROM relay`;
const HELD_WHILE_TENDING = "15 seconds";
/** A little less than the time between two passes of one process. */
const HELD_AFTERWARDS = "1500 milliseconds";

function upkeep(pool: pg.Pool, account: AccountValues) {
  const rows = async <Row extends pg.QueryResultRow>(name: string, text: string, values: readonly unknown[] = []) =>
    (await pool.query<Row>({ name, text, values: [...account, ...values] })).rows;
  const run = async (name: string, text: string, values: readonly unknown[] = []): Promise<number> =>
    (await pool.query({ name, text, values: [...account, ...values] })).rowCount ?? 0;
  return {
    /** Claims the account's upkeep for a while; false while another process, or the last pass, holds it. */
    async claim(): Promise<boolean> {
      const text = `INSERT INTO relay_upkeep VALUES ($1, $2, now() + interval '${HELD_WHILE_TENDING}')
        ON CONFLICT (chain, sender) DO UPDATE SET held_until = excluded.held_until
        WHERE relay_upkeep.held_until <= now()`;
      return (await run("relay-claim", text)) === 1;
    },

    async release(): Promise<void> {
      const text = `UPDATE relay_upkeep SET held_until = now() + interval '${HELD_AFTERWARDS}' WHERE ${OWN}`;
      await run("relay-release", text);
    },

    /** Returns whether there are unmined transactions, and mined ones that are not final. */
    async kinds(): Promise<{ readonly unmined: boolean; readonly unfinal: boolean }> {
      const text = `SELECT EXISTS (SELECT FROM relay WHERE ${OWN} AND state = 'sent') AS unmined,
        EXISTS (SELECT FROM relay WHERE ${OWN} AND state = 'mined') AS unfinal`;
      const [found] = await rows<{ unmined: boolean; unfinal: boolean }>("relay-kinds", text);
      return found ?? { unmined: false, unfinal: false };
    },

    /** Returns the transactions in no known block, lowest nonce first. */
    unmined: (count: number, limit: number) =>
      rows<Unmined>(
        "relay-unmined-now",
        `${UNMINED} WHERE ${OWN} AND state = 'sent' AND nonce >= $3 ORDER BY nonce LIMIT $4`,
        [count, limit],
      ),

    /** Returns the transactions whose nonce is used although their block is not known, least recently checked first. */
    unexplained: (count: number, limit: number) =>
      rows<Unmined>(
        "relay-unexplained",
        `${UNMINED} WHERE ${OWN} AND state = 'sent' AND nonce < $3 ORDER BY tended_at, nonce LIMIT $4`,
        [count, limit],
      ),

    async tended(ids: readonly string[]): Promise<void> {
      await pool.query({
        name: "relay-tended",
        text: "UPDATE relay SET tended_at = now() WHERE id = ANY($1) AND state = 'sent'",
        values: [ids],
      });
    },

    /** Replaces the bytes of a transaction; false if they were replaced meanwhile. */
    async replaced(was: Unmined, by: { readonly hash: Hex; readonly raw: Buffer; readonly maxFee: bigint }) {
      const { rowCount } = await pool.query({
        name: "relay-replace",
        text: `UPDATE relay SET raw = $3, hashes = hashes || $4::bytea, max_fee = $5, tended_at = now()
          WHERE id = $1 AND state = 'sent' AND raw = $2`,
        values: [was.id, was.raw, by.raw, bytes(by.hash), by.maxFee.toString()],
      });
      return rowCount === 1;
    },

    /** Records that another transaction used the nonce, in a final block. */
    async lost(id: string): Promise<void> {
      await pool.query("UPDATE relay SET state = 'lost' WHERE id = $1 AND state = 'sent'", [id]);
    },

    /** Returns the blocks of mined transactions with nonces from `from` up to `below`, oldest first. */
    async blocks(nonces: { readonly from: number; readonly below: number }, limit: number): Promise<Block[]> {
      const text = `SELECT block_number, block_hash FROM relay
        WHERE ${OWN} AND state = 'mined' AND nonce >= $3 AND nonce < $4
        GROUP BY block_number, block_hash ORDER BY block_number LIMIT $5`;
      const values = [nonces.from, nonces.below, limit];
      const found = await rows<{ block_number: string; block_hash: Buffer }>("relay-blocks", text, values);
      return found.map((row) => ({ number: BigInt(row.block_number), hash: hex(row.block_hash) }));
    },

    async finalize(blocks: readonly Hex[], below: number): Promise<void> {
      const text = `UPDATE relay SET state = 'final' WHERE ${OWN} AND state = 'mined' AND nonce < $3 AND block_hash = ANY($4)`;
      await run("relay-final", text, [below, blocks.map(bytes)]);
    },

    /** Reopens the transactions of blocks that the chain no longer has, so that they are looked for again. */
    async reopen(blocks: readonly Hex[]): Promise<void> {
      const text = `UPDATE relay
        SET state = 'sent', mined_hash = NULL, block_number = NULL, block_hash = NULL, reverted = NULL, failed = '{}', lost_wei = 0
        WHERE ${OWN} AND state = 'mined' AND block_hash = ANY($3)`;
      await run("relay-reopen", text, [blocks.map(bytes)]);
    },
  };
}

/**
 * The cost of failed payments; $8 is the transaction's cost. A batch that reverted as a whole was not caused by a
 * payer. A transaction that was mined after the guaranteed window of its payments may have failed because of our delay.
 */
const LOST = `CASE WHEN lane NOT IN ('batch', 'alone') OR created_at < now() - interval '${WINDOW_MARGIN_SECONDS} s' THEN 0
  WHEN $5 AND cardinality(purposes) > 1 THEN 0 WHEN $5 THEN $8::numeric
  ELSE $8::numeric * cardinality($6::smallint[]) / cardinality(purposes) END`;

function outcomes(pool: pg.Pool, chainId: number) {
  return {
    /**
     * Records the block of a transaction, even of one that was given up too early, or that a reorganization has moved,
     * because other calls of it may fail there. Returns null if its block was known.
     */
    async mined({ hash, block, blockHash, reverted, failed, served, feeWei }: Mined): Promise<Purposes | null> {
      const { rows } = await pool.query<Purposes>({
        name: "relay-mined",
        text: `UPDATE relay SET state = 'mined', mined_hash = $2, block_number = $3, block_hash = $4, reverted = $5,
            failed = CASE WHEN $7::bytea[] IS NULL THEN $6::smallint[] ELSE ARRAY(
              SELECT place FROM generate_subscripts(purposes, 1) AS place WHERE purposes[place] <> ALL ($7)) END,
            lost_wei = ${LOST}
          WHERE hashes @> ARRAY[$2::bytea] AND chain = $1
            AND (state IN ('sent', 'lost') OR (state = 'mined' AND block_hash <> $4))
          RETURNING cardinality(purposes) AS "all", cardinality(failed) AS failed`,
        values: [
          chainId,
          bytes(hash),
          block.toString(),
          bytes(blockHash),
          reverted,
          failed,
          served?.map(bytes) ?? null,
          feeWei.toString(),
        ],
      });
      return rows[0] ?? null;
    },

    /** Returns every hash of the transaction that once had this one. */
    async hashesOf(hash: Hex): Promise<readonly Hex[]> {
      const { rows } = await pool.query<{ hashes: Buffer[] }>({
        name: "relay-hashes",
        text: "SELECT hashes FROM relay WHERE hashes @> ARRAY[$1::bytea]",
        values: [bytes(hash)],
      });
      return rows[0]?.hashes.map(hex) ?? [hash];
    },
  };
}

/** The number of the oldest transactions that one statement examines. */
const LOOKED_AT = 1_000;

/**
 * A transaction is kept until its purpose can no longer be sent again. Its authorization was valid for at most a day
 * when it was sent, so thirty days are enough.
 */
const PRUNE = `DELETE FROM relay WHERE id = ANY(ARRAY(
    SELECT id FROM (SELECT id, state, created_at FROM relay ORDER BY id LIMIT ${LOOKED_AT}) oldest
    WHERE state = 'final' AND created_at < now() - interval '30 days'))`;

/** Deletes a batch of the relayer's old final transactions; returns their number, 0 when there are no more. */
export const createRelayPruning = (pool: pg.Pool) => async (): Promise<number> =>
  (await pool.query({ name: "relay-prune", text: PRUNE })).rowCount ?? 0;
