import type pg from "pg";
import type { Verdict } from "../../arbiter/policy/policy.ts";
import type { VerdictRequest } from "../../arbiter/request.ts";
import {
  type LogEntry,
  type NewVerdict,
  type Place,
  type StoredVerdict,
  VERDICT_QUEUE,
  type VerdictStore,
} from "../../arbiter/verdict-store.ts";
import type { Transaction } from "../../kernel/transaction.ts";
import { createTurns } from "./turns.ts";

const INSERT = `INSERT INTO verdict (idx, id, supersedes, category, outcome, request, document, sha256, issued_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) DO NOTHING`;
const END = "SELECT idx, sha256 FROM verdict ORDER BY idx DESC LIMIT 1";

interface Columns {
  idx: string;
  id: string;
  supersedes: string | null;
  superseded_by: string | null;
  category: string;
  outcome: Verdict;
  request: VerdictRequest;
  document: string;
  sha256: string;
  issued_at: Date;
}

const FIND =
  "SELECT v.*, s.id AS superseded_by FROM verdict v LEFT JOIN verdict s ON s.supersedes = v.id WHERE v.id = $1";
const ENTRY = "SELECT idx, id, supersedes, category, outcome, sha256, issued_at FROM verdict";

/** The log of verdicts: append-only, each entry naming the hash of the previous one. */
export function createVerdictStore(pool: pg.Pool): VerdictStore {
  const inTurn = createTurns(pool);
  return {
    get: (id) => find(pool, id),
    append,
    inTurn: (work) => inTurn(VERDICT_QUEUE, work),
    async log({ before, limit }) {
      const { rows } = await pool.query<Columns>(
        `${ENTRY} WHERE idx < coalesce($1::bigint, 9223372036854775807) ORDER BY idx DESC LIMIT $2`,
        [before, limit],
      );
      return rows.map(entry);
    },
    async corrections(limit) {
      const { rows } = await pool.query<Columns>(`${ENTRY} WHERE supersedes IS NOT NULL ORDER BY idx DESC LIMIT $1`, [
        limit,
      ]);
      return rows.map(entry);
    },
    async totals() {
      const { rows } = await pool.query<{ outcome: Verdict; count: string }>(
        "SELECT outcome, count(*) FROM verdict GROUP BY outcome",
      );
      const of = (outcome: Verdict) => Number(rows.find((row) => row.outcome === outcome)?.count ?? 0);
      return { release: of("release"), refund: of("refund"), escalate: of("escalate") };
    },
  };
}

/** The place after the last verdict, as the turns of one transaction know it: nobody else writes meanwhile. */
const nextPlaces = new WeakMap<Transaction, Place>();

async function nextPlace(transaction: Transaction): Promise<Place> {
  const known = nextPlaces.get(transaction);
  if (known !== undefined) return known;
  const { rows } = await transaction.query<Pick<Columns, "idx" | "sha256">>(END, []);
  return { index: Number(rows[0]?.idx ?? 0) + 1, previousSha256: rows[0]?.sha256 ?? null };
}

async function append({ signAt, ...reached }: NewVerdict, transaction: Transaction): Promise<StoredVerdict> {
  const place = await nextPlace(transaction);
  const stored: StoredVerdict = { ...reached, ...signAt(place), index: place.index, supersededBy: null };
  const { rowCount } = await transaction.query(INSERT, columnsOf(stored));
  const isNew = rowCount === 1;
  nextPlaces.set(transaction, isNew ? { index: place.index + 1, previousSha256: stored.sha256 } : place);
  const found = isNew ? stored : await find(transaction, stored.id);
  if (found === null) throw new Error(`the verdict ${stored.id} is neither written nor there`);
  return found;
}

/** In insertion order. */
const columnsOf = (verdict: StoredVerdict): readonly unknown[] => [
  verdict.index,
  verdict.id,
  verdict.supersedes,
  verdict.request.category,
  verdict.outcome,
  JSON.stringify(verdict.request),
  verdict.document,
  verdict.sha256,
  verdict.issuedAt,
];

async function find(at: Transaction, id: string): Promise<StoredVerdict | null> {
  const { rows } = await at.query<Columns>(FIND, [id]);
  const [row] = rows;
  return row === undefined
    ? null
    : {
        id,
        index: Number(row.idx),
        request: row.request,
        outcome: row.outcome,
        issuedAt: row.issued_at,
        document: row.document,
        sha256: row.sha256,
        supersedes: row.supersedes,
        supersededBy: row.superseded_by,
      };
}

const entry = ({ idx, id, supersedes, category, outcome, sha256, issued_at }: Columns): LogEntry => ({
  index: Number(idx),
  id,
  supersedes,
  category,
  outcome,
  sha256,
  issuedAt: issued_at,
});
