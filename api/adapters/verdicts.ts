import type pg from "pg";
import type { Verdict } from "../arbiter/policy/policy.ts";
import type { LogEntry, NewVerdict, Place, StoredVerdict, VerdictStore } from "../arbiter/ports.ts";
import type { VerdictRequest } from "../arbiter/request.ts";
import { inTransaction } from "./database.ts";

/** One process at a time writes at the end of the log. The second statement sees what the one before it has committed. */
const TAKE_END = [
  "SELECT pg_advisory_xact_lock(hashtext('verdict log'))",
  "SELECT idx, sha256 FROM verdict ORDER BY idx DESC LIMIT 1",
];
const INSERT = `INSERT INTO verdict (idx, id, supersedes, category, outcome, request, document, sha256, issued_at)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::jsonb[], $7::text[], $8::text[], $9::timestamptz[])`;
/** Verdicts of one transaction. */
const MAX_BATCH = 32;

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

/** The log of verdicts: append-only, each naming the hash of the one before it. */
export function createVerdictStore(pool: pg.Pool): VerdictStore {
  return {
    get: (id) => find(pool, id),
    append: createAppender(pool),
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

interface Waiting {
  readonly verdict: NewVerdict;
  readonly resolve: (stored: StoredVerdict) => void;
  readonly reject: (error: unknown) => void;
}

/** Those that come while a transaction runs share the next one: the log takes one connection, however many verdicts wait. */
function createAppender(pool: pg.Pool): VerdictStore["append"] {
  const waiting: Waiting[] = [];
  let isRunning = false;
  const run = async () => {
    isRunning = true;
    while (waiting.length > 0) await settle(pool, waiting.splice(0, MAX_BATCH));
    isRunning = false;
  };
  return (verdict) =>
    new Promise((resolve, reject) => {
      waiting.push({ verdict, resolve, reject });
      if (!isRunning) void run();
    });
}

async function settle(pool: pg.Pool, batch: readonly Waiting[]): Promise<void> {
  try {
    const stored = await inTransaction(pool, (client, [, head]) => writeAll(client, batch, after(head)), TAKE_END);
    for (const [index, { resolve }] of batch.entries()) resolve(stored[index] as StoredVerdict);
  } catch (error) {
    // What one of them is to blame for is not the others' loss.
    if (batch.length > 1) for (const one of batch) await settle(pool, [one]);
    else for (const one of batch) await settleRefused(pool, one, error);
  }
}

/** What the database refuses may be there already, written by another process or by a commit that nobody heard of. */
async function settleRefused(pool: pg.Pool, { verdict, resolve, reject }: Waiting, error: unknown): Promise<void> {
  const existing = await find(pool, verdict.id).catch(() => null);
  if (existing === null) reject(error);
  else resolve(existing);
}

/** The place after the last verdict. */
function after(head: pg.QueryResult<Pick<Columns, "idx" | "sha256">> | undefined): Place {
  const last = head?.rows[0];
  return { index: Number(last?.idx ?? 0) + 1, previousSha256: last?.sha256 ?? null };
}

/** Signs and inserts them, one after the other from `first` on. */
async function writeAll(
  client: pg.PoolClient,
  batch: readonly Waiting[],
  first: Place,
): Promise<readonly StoredVerdict[]> {
  let place = first;
  const written: StoredVerdict[] = [];
  for (const { verdict } of batch) {
    const { id, request, outcome, issuedAt, supersedes, seal } = verdict;
    const { document, sha256 } = seal(place);
    const { index } = place;
    written.push({ id, index, request, outcome, issuedAt, document, sha256, supersedes, supersededBy: null });
    place = { index: index + 1, previousSha256: sha256 };
  }
  const column = (value: (verdict: StoredVerdict) => unknown) => written.map(value);
  const columns = [
    column(({ index }) => index),
    column(({ id }) => id),
    column(({ supersedes }) => supersedes),
    column(({ request }) => request.category),
    column(({ outcome }) => outcome),
    column(({ request }) => JSON.stringify(request)),
    column(({ document }) => document),
    column(({ sha256 }) => sha256),
    column(({ issuedAt }) => issuedAt),
  ];
  await client.query({ name: "verdict-insert", text: INSERT, values: columns });
  return written;
}

async function find(pool: pg.Pool, id: string): Promise<StoredVerdict | null> {
  const { rows } = await pool.query<Columns>({ name: "verdict-find", text: FIND, values: [id] });
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
