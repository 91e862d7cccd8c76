import { createHash } from "node:crypto";
import type pg from "pg";
import type { Blocks } from "../../platform/chain/log-answers.ts";
import { bytes, hex } from "../../platform/db/connection.ts";
import type { Address } from "../../platform/wallet.ts";
import type { Examined } from "./examine.ts";
import {
  type Basis,
  type Claim,
  type Inflows,
  type KnownBlock,
  NO_INFLOWS,
  type Progress,
  type Snapshot,
} from "./inflows.ts";

interface InflowRow {
  readonly wallet: Buffer;
  readonly through: string | null;
  readonly through_hash: Buffer;
  readonly through_nonce: Buffer;
  readonly inflows: Inflows;
}

interface SnapshotRow {
  readonly wallet: Buffer;
  readonly block: string;
  readonly made_at: Date;
  readonly found: Examined & { readonly block_hash: `0x${string}`; readonly as_of_block: number };
}

const COLUMNS = "wallet, through, through_hash, through_nonce, inflows";

/** Totals counted on another basis are ignored. */
const KNOWN = `SELECT ${COLUMNS} FROM inflow WHERE wallet = ANY($1) AND basis = $2`;

/** Once a day, so that rows in use are kept. A row locked by another writer is in use anyway. */
const USE = `UPDATE inflow SET used_at = now() WHERE ctid = ANY(ARRAY(SELECT ctid FROM inflow
    WHERE wallet = ANY($1) AND used_at < now() - interval '1 day' FOR UPDATE SKIP LOCKED))`;

const CLAIM = `INSERT INTO inflow AS known (wallet, basis, inflows, claimed_by, claimed_until)
  SELECT unnest($1::bytea[]), $2, $3, $4, now() + make_interval(secs => $5)
  ON CONFLICT (wallet) DO UPDATE SET claimed_by = excluded.claimed_by, claimed_until = excluded.claimed_until, used_at = now(),
    basis = excluded.basis,
    through = CASE WHEN known.basis = excluded.basis THEN known.through END,
    inflows = CASE WHEN known.basis = excluded.basis THEN known.inflows ELSE excluded.inflows END
    WHERE known.claimed_by IS NULL OR known.claimed_by = excluded.claimed_by OR known.claimed_until < now()
  RETURNING ${COLUMNS}`;

/** Locks these rows in the order of their keys, whatever the plan. */
const LOCKED = "SELECT wallet FROM inflow WHERE wallet = ANY($1) AND basis = $2 ORDER BY wallet FOR UPDATE";

/**
 * The progress that has read furthest is right because final blocks do not change, so an answer that arrives after the
 * claim has lapsed is still stored. A claim is renewed only if it still belongs to the caller.
 */
const SAVE = `WITH locked AS MATERIALIZED (${LOCKED})
  UPDATE inflow SET through = new.through, through_hash = new.hash, through_nonce = new.nonce, inflows = new.inflows,
    claimed_until = CASE WHEN claimed_by = $3 THEN now() + make_interval(secs => $4) ELSE claimed_until END
  FROM unnest($1::bytea[], $5::bigint[], $6::bytea[], $7::bytea[], $8::jsonb[]) new (wallet, through, hash, nonce, inflows),
    locked
  WHERE inflow.wallet = new.wallet AND locked.wallet = new.wallet AND basis = $2 AND coalesce(inflow.through, -1) < new.through`;

const RELEASE = `WITH locked AS MATERIALIZED (${LOCKED})
  UPDATE inflow SET claimed_by = NULL FROM locked WHERE inflow.wallet = locked.wallet AND claimed_by = $3`;

const SNAPSHOTS = "SELECT wallet, block, made_at, found FROM score_lookup WHERE wallet = ANY($1) AND basis = $2";

const KEEP = `INSERT INTO score_lookup AS known (wallet, basis, block, found, made_at) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (wallet) DO UPDATE SET basis = excluded.basis, block = excluded.block, found = excluded.found, made_at = excluded.made_at
  WHERE known.basis <> excluded.basis OR known.block <= excluded.block`;

const basisOf = ({ firstBlock, ignored }: Basis): Buffer =>
  createHash("sha256")
    .update(JSON.stringify([firstBlock, [...ignored].sort()]))
    .digest();

const progressOf = (row: InflowRow): Progress => ({
  wallet: hex(row.wallet),
  through:
    row.through === null
      ? null
      : { block: Number(row.through), hash: hex(row.through_hash), nonce: hex(row.through_nonce) },
  inflows: row.inflows,
});

/** In the order of their keys, so that two processes that need several rows never wait for each other. */
const keysOf = (wallets: readonly `0x${string}`[]): readonly Buffer[] => [...new Set(wallets)].sort().map(bytes);

export type LookupStore = ReturnType<typeof createLookupStore>;

/**
 * Stores look-ups in PostgreSQL, shared by all processes. They stay valid because final blocks do not change. Claims
 * lapse, so a dead process does not hold up the others.
 */
export function createLookupStore(pool: pg.Pool) {
  return {
    /** Returns the stored progress of these wallets, claimed or not. */
    async known(basis: Basis, wallets: readonly Address[]): Promise<readonly Progress[]> {
      const keys = keysOf(wallets);
      const { rows } = await pool.query<InflowRow>(KNOWN, [keys, basisOf(basis)]);
      await pool.query(USE, [keys]);
      return rows.map(progressOf);
    },
    /** Claims those wallets that no other process is reading, for `seconds`. A claim lapses unless `save` renews it. */
    async claim(basis: Basis, wallets: readonly Address[], { token, seconds }: Claim): Promise<readonly Progress[]> {
      const values = [keysOf(wallets), basisOf(basis), JSON.stringify(NO_INFLOWS), token, seconds];
      const { rows } = await pool.query<InflowRow>(CLAIM, values);
      return rows.map(progressOf);
    },
    /**
     * Stores a wallet's progress unless more is stored already. Renews the claim unless another process has it by now.
     */
    async save(basis: Basis, progress: readonly Progress[], { token, seconds }: Claim): Promise<void> {
      const read = progress.flatMap(({ wallet, through, inflows }) =>
        through === null ? [] : [{ wallet, through, inflows }],
      );
      const sorted = read.toSorted((a, b) => (a.wallet < b.wallet ? -1 : 1));
      await pool.query(SAVE, [
        ...[sorted.map(({ wallet }) => bytes(wallet)), basisOf(basis), token, seconds],
        ...[sorted.map(({ through }) => through.block), sorted.map(({ through }) => bytes(through.hash))],
        ...[sorted.map(({ through }) => bytes(through.nonce)), sorted.map(({ inflows }) => JSON.stringify(inflows))],
      ]);
    },
    async release(basis: Basis, wallets: readonly Address[], { token }: Claim): Promise<void> {
      await pool.query(RELEASE, [keysOf(wallets), basisOf(basis), token]);
    },
    async snapshots(basis: Basis, wallets: readonly Address[]): Promise<readonly Snapshot[]> {
      const { rows } = await pool.query<SnapshotRow>(SNAPSHOTS, [keysOf(wallets), basisOf(basis)]);
      return rows.map(({ wallet, block, made_at, found }) => ({
        ...found,
        ...{ wallet: hex(wallet), block: Number(block), made_at },
      }));
    },
    async keep(basis: Basis, { wallet, block, made_at, ...found }: Snapshot): Promise<void> {
      await pool.query(KEEP, [bytes(wallet), basisOf(basis), block, JSON.stringify(found), made_at]);
    },
  };
}

interface MarkRow {
  readonly block: string;
  readonly hash: Buffer;
  readonly nonce: Buffer;
}

const MARK_COLUMNS = "block, hash, nonce";
const BETWEEN = `SELECT ${MARK_COLUMNS} FROM lookup_mark WHERE block BETWEEN $1 AND $2 ORDER BY block`;
const NEWEST = `SELECT ${MARK_COLUMNS} FROM lookup_mark WHERE newest_at > now() - make_interval(secs => $1) ORDER BY block DESC LIMIT 1`;
const ADD = `INSERT INTO lookup_mark AS known (block, hash, nonce, newest_at) VALUES ($1, $2, $3, CASE WHEN $4 THEN now() END)
  ON CONFLICT (block) DO UPDATE SET seen_at = now(), newest_at = coalesce(excluded.newest_at, known.newest_at)
  RETURNING ${MARK_COLUMNS}`;

const markOf = ({ block, hash, nonce }: MarkRow): KnownBlock => ({
  block: Number(block),
  hash: hex(hash),
  nonce: hex(nonce),
});

export type MarkStore = ReturnType<typeof createMarkStore>;

/** Stores the final blocks against which nodes are checked, shared by all processes. */
export function createMarkStore(pool: pg.Pool) {
  const one = async (text: string, values: readonly unknown[]) => {
    const { rows } = await pool.query<MarkRow>(text, [...values]);
    return rows[0] === undefined ? null : markOf(rows[0]);
  };
  return {
    /** Returns the first or the last mark in these blocks. */
    between: ({ first, last }: Blocks, which: "first" | "last") =>
      one(`${BETWEEN} ${which === "first" ? "ASC" : "DESC"} LIMIT 1`, [first, last]),
    /** Returns the newest mark that was found to be the last final one within this many seconds. */
    newest: (withinSeconds: number) => one(NEWEST, [withinSeconds]),
    /**
     * Returns the mark stored for this block, which differs if the chain has changed.
     * @param isNewest whether it is the last final mark
     */
    add: async ({ block, hash, nonce }: KnownBlock, isNewest: boolean) =>
      (await one(ADD, [block, bytes(hash), bytes(nonce), isNewest])) as KnownBlock,
  };
}
