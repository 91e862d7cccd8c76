import pg from "pg";
import { inTransaction, type Statement, type Transaction, transactionOn } from "../platform/db/connection.ts";
import { readCounters } from "../platform/db/counters.ts";
import type { Meter } from "../platform/metrics/meter.ts";
import type { Address } from "../platform/wallet.ts";
import type { TransferKey } from "./policy/category.ts";
import type { Verdict } from "./policy/policy.ts";
import type { VerdictRequest } from "./request.ts";

const FIND = `SELECT v.id, v.request, v.outcome, v.issued_at AS "issuedAt", v.document, v.sha256, v.supersedes, s.id AS "supersededBy"
  FROM verdict v LEFT JOIN verdict s ON s.supersedes = v.id WHERE v.id = $1`;
const LISTED = `SELECT id, supersedes, category, outcome, request ->> 'claimant' AS claimant, sha256, issued_at AS "issuedAt"
  FROM verdict`;
const NEWEST_FIRST = "ORDER BY issued_at DESC, id DESC LIMIT $1";
const BEFORE = "WHERE (issued_at, id) < (SELECT issued_at, id FROM verdict WHERE id = $2)";
const UNIQUE_VIOLATION = "23505";

export function createVerdictStore(pool: pg.Pool): VerdictStore {
  const listed = async (text: string, values: readonly unknown[]) =>
    (await pool.query<ListedVerdict>(text, [...values])).rows;
  return {
    get: (id) => find(pool, id),
    adding,
    add,
    async record(verdict) {
      try {
        await inTransaction(pool, (client) => add(verdict, transactionOn(client)));
      } catch (error) {
        if (!(error instanceof pg.DatabaseError) || error.code !== UNIQUE_VIOLATION) throw error;
      }
      const stored = await find(pool, verdict.id);
      if (stored === null) throw new Error(`the verdict ${verdict.id} could not be stored`);
      return stored;
    },
    list: ({ before, limit }) =>
      before === null
        ? listed(`${LISTED} ${NEWEST_FIRST}`, [limit])
        : listed(`${LISTED} ${BEFORE} ${NEWEST_FIRST}`, [limit, before]),
    corrections: (limit) => listed(`${LISTED} WHERE supersedes IS NOT NULL ${NEWEST_FIRST}`, [limit]),
    async totals() {
      const { verdict } = await readCounters(pool, ["verdict"]);
      const of = (outcome: Verdict) => verdict.get(outcome)?.count ?? 0;
      return { release: of("release"), refund: of("refund"), escalate: of("escalate") };
    },
  };
}

const adding: VerdictStore["adding"] = ({ id, supersedes, request, outcome, document, sha256, issuedAt }) => ({
  text: `INSERT INTO verdict (id, supersedes, category, outcome, request, document, sha256, issued_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
  values: [id, supersedes, request.category, outcome, JSON.stringify(request), document, sha256, issuedAt],
});

async function add(verdict: NewVerdict, transaction: Transaction): Promise<SignedVerdict> {
  const stored = await decidedOnce(verdict, transaction);
  const { text, values } = adding(stored);
  await transaction.query(text, values);
  return stored;
}

const TAKE = `INSERT INTO verdict_transfer (network, tx, log_index, verdict) VALUES ($1, $2, $3, $4)
  ON CONFLICT (network, tx, log_index) DO NOTHING`;
/** Finds the verdict that decided a transfer, and whether it is this verdict or one that it corrects. */
const HOLDER = `WITH RECURSIVE line (id, supersedes) AS (
    SELECT $4::text, $5::text UNION ALL SELECT v.id, v.supersedes FROM verdict v JOIN line ON v.id = line.supersedes)
  SELECT verdict, verdict IN (SELECT id FROM line) AS is_own FROM verdict_transfer
  WHERE network = $1 AND tx = $2 AND log_index = $3`;

/**
 * Returns the verdict if it may decide its transfer, or the one to return if another verdict has already decided it.
 * Concurrent calls wait until the first one commits. The row is stored together with the verdict or not at all.
 */
async function decidedOnce(verdict: NewVerdict, transaction: Transaction): Promise<SignedVerdict> {
  const { id, supersedes, transfer } = verdict;
  if (transfer === undefined) return verdict;
  const key = [transfer.network, Buffer.from(transfer.transaction.slice(2), "hex"), transfer.logIndex, id];
  if ((await transaction.query(TAKE, key)).rowCount === 1) return verdict;
  const { rows } = await transaction.query<{ verdict: string; is_own: boolean }>(HOLDER, [...key, supersedes]);
  const [holder] = rows;
  if (holder === undefined) throw new Error("no verdict decided this transfer, but it could not be claimed");
  return holder.is_own ? verdict : transfer.decidedBefore(holder.verdict);
}

const find = async (at: Pick<pg.Pool, "query">, id: string): Promise<StoredVerdict | null> =>
  (await at.query<StoredVerdict>(FIND, [id])).rows[0] ?? null;

/** The verdict that a correction replaces. */
export interface Superseded {
  readonly id: string;
  readonly sha256: string;
  /** The arbiter's error. */
  readonly reason: string;
}

/** A signed verdict. */
export interface SignedVerdict {
  readonly id: string;
  readonly request: VerdictRequest;
  readonly outcome: Verdict;
  readonly issuedAt: Date;
  /** The signed document, byte for byte. */
  readonly document: string;
  readonly sha256: string;
  readonly supersedes: string | null;
}

/** A verdict to be stored. */
export interface NewVerdict extends SignedVerdict {
  /**
   * The transfer that it decides. Only one verdict and its corrections can; for any other, `decidedBefore` returns the
   * verdict to store.
   */
  readonly transfer?: TransferKey & { readonly decidedBefore: (verdict: string) => Promise<SignedVerdict> };
}

/** A verdict as stored permanently. */
export interface StoredVerdict extends SignedVerdict {
  readonly supersededBy: string | null;
}

/** An entry of the list of verdicts. */
export interface ListedVerdict extends Pick<SignedVerdict, "id" | "outcome" | "sha256" | "issuedAt" | "supersedes"> {
  readonly category: string;
  /** The wallet that paid for it, or for the verdict that it corrects. */
  readonly claimant: Address | null;
}

export interface VerdictTotals {
  readonly release: number;
  readonly refund: number;
  readonly escalate: number;
}

export interface VerdictStore {
  get(id: string): Promise<StoredVerdict | null>;
  /** Returns the write that stores a verdict. */
  adding(verdict: SignedVerdict): Statement;
  /**
   * Stores a verdict and marks its transfer as decided by it. If another verdict has decided the transfer, the stored
   * verdict refers to that one.
   */
  add(verdict: NewVerdict, transaction: Transaction): Promise<SignedVerdict>;
  /** Stores a verdict in a separate transaction, unless one with its ID is already stored. Returns the stored one. */
  record(verdict: NewVerdict): Promise<StoredVerdict>;
  /** Returns verdicts, newest first, older than the verdict with the given ID. */
  list(page: { readonly before: string | null; readonly limit: number }): Promise<readonly ListedVerdict[]>;
  /** Returns the newest corrections. */
  corrections(limit: number): Promise<readonly ListedVerdict[]>;
  totals(): Promise<VerdictTotals>;
}

/** Wraps the store and counts attempted additions, including transactions lost to a failing database. */
export const countedVerdicts = (store: VerdictStore, meter: Meter): VerdictStore => ({
  ...store,
  adding(verdict) {
    meter.verdict(verdict.request.category, verdict.outcome);
    return store.adding(verdict);
  },
  async add(verdict, transaction) {
    const added = await store.add(verdict, transaction);
    meter.verdict(added.request.category, added.outcome);
    return added;
  },
});
