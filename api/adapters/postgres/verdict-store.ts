import type pg from "pg";
import type { Verdict } from "../../arbiter/policy/policy.ts";
import type { VerdictRequest } from "../../arbiter/request.ts";
import {
  type LogEntry,
  type NewVerdict,
  type StoredVerdict,
  VERDICT_QUEUE,
  type VerdictStore,
} from "../../arbiter/verdict-store.ts";
import type { Transaction } from "../../kernel/transaction.ts";
import { takeQueue } from "./complete-sale.ts";
import { inTransaction } from "./connection.ts";

const INSERT = `INSERT INTO verdict (idx, id, supersedes, category, outcome, request, document, sha256, issued_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`;
/** The end of the log, and whether it already contains a verdict. */
const END = `SELECT last.idx, last.sha256, EXISTS (SELECT FROM verdict WHERE id = $1) AS known
  FROM (SELECT) one LEFT JOIN LATERAL (SELECT idx, sha256 FROM verdict ORDER BY idx DESC LIMIT 1) last ON true`;

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
  return {
    get: (id) => find(pool, id),
    append,
    inTurn: (work) => inTransaction(pool, (client) => work(client), [takeQueue(VERDICT_QUEUE)]),
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

interface End {
  idx: string | null;
  sha256: string | null;
  known: boolean;
}

async function append(verdict: NewVerdict, transaction: Transaction): Promise<StoredVerdict> {
  const { rows } = await transaction.query<End>(END, [verdict.id]);
  const { idx = null, sha256 = null, known = false } = rows[0] ?? {};
  const existing = known ? await find(transaction, verdict.id) : null;
  if (existing !== null) return existing;
  const { signAt, ...reached } = verdict;
  const place = { index: Number(idx ?? 0) + 1, previousSha256: sha256 };
  const stored: StoredVerdict = { ...reached, ...signAt(place), index: place.index, supersededBy: null };
  await transaction.query(INSERT, columnsOf(stored));
  return stored;
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
