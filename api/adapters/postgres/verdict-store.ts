import type pg from "pg";
import type { Verdict } from "../../arbiter/policy/policy.ts";
import type { VerdictRequest } from "../../arbiter/request.ts";
import { type LogEntry, type StoredVerdict, VERDICT_QUEUE, type VerdictStore } from "../../arbiter/verdict-store.ts";
import type { Transaction } from "../../kernel/transaction.ts";
import { createTurns } from "./turns.ts";
import { appendVerdict, VERDICT_FRAMES } from "./verdict-log.ts";

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
  const inTurn = createTurns(pool, VERDICT_FRAMES);
  return {
    get: (id) => find(pool, id),
    async append(verdict, transaction) {
      const stored = (await appendVerdict(verdict, transaction)) ?? (await find(transaction, verdict.id));
      if (stored === null) throw new Error(`the verdict ${verdict.id} is neither written nor there`);
      return stored;
    },
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
