import type pg from "pg";
import type { Verdict } from "../../arbiter/policy/policy.ts";
import type { VerdictRequest } from "../../arbiter/request.ts";
import type { LogEntry, NewVerdict, Place, StoredVerdict, VerdictStore } from "../../arbiter/verdict-store.ts";
import { inTransaction } from "./connection.ts";

/** One process at a time writes at the end of the log. The second statement sees what the one before it has committed. */
const TAKE_END = [
  "SELECT pg_advisory_xact_lock(hashtext('verdict log'))",
  "SELECT idx, sha256 FROM verdict ORDER BY idx DESC LIMIT 1",
];
const INSERT = `INSERT INTO verdict (idx, id, supersedes, category, outcome, request, document, sha256, issued_at)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::jsonb[], $7::text[], $8::text[], $9::timestamptz[])`;
/**
 * One verdict in one round trip, where the end of the log is the one that this process wrote last. Whoever holds the lock is waited
 * for first; nothing is inserted when the end has moved since, or the id is there already.
 */
const INSERT_NEXT = `INSERT INTO verdict (idx, id, supersedes, category, outcome, request, document, sha256, issued_at)
  SELECT $1::bigint, $2::text, $3::text, $4::text, $5::text, $6::jsonb, $7::text, $8::text, $9::timestamptz
  FROM (SELECT pg_advisory_xact_lock(hashtext('verdict log'))) taken
  WHERE EXISTS (SELECT 1 FROM verdict WHERE idx = $1::bigint - 1 AND sha256 = $10)
  ON CONFLICT DO NOTHING`;
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
  const log: Log = { pool, end: null };
  let isRunning = false;
  const run = async () => {
    isRunning = true;
    while (waiting.length > 0) await settle(log, waiting.splice(0, MAX_BATCH));
    isRunning = false;
  };
  return (verdict) =>
    new Promise((resolve, reject) => {
      waiting.push({ verdict, resolve, reject });
      if (!isRunning) void run();
    });
}

interface Log {
  readonly pool: pg.Pool;
  /** The verdict that this process wrote last. */
  end: StoredVerdict | null;
}

async function settle(log: Log, batch: readonly Waiting[]): Promise<void> {
  try {
    const stored = (await writeNext(log, batch)) ?? (await writeLocked(log, batch));
    log.end = stored.at(-1) ?? null;
    for (const [index, { resolve }] of batch.entries()) resolve(stored[index] as StoredVerdict);
  } catch (error) {
    // What one of them is to blame for is not the others' loss.
    if (batch.length > 1) for (const one of batch) await settle(log, [one]);
    else for (const one of batch) await settleRefused(log.pool, one, error);
  }
}

/** A single verdict right after the last one; null when another process may have written since. */
async function writeNext({ pool, end }: Log, batch: readonly Waiting[]): Promise<readonly StoredVerdict[] | null> {
  const [one, ...more] = batch;
  if (one === undefined || more.length > 0 || end === null) return null;
  const written = signedAt(one.verdict, { index: end.index + 1, previousSha256: end.sha256 });
  const values = [...columnsOf(written), end.sha256];
  const { rowCount } = await pool.query({ name: "verdict-next", text: INSERT_NEXT, values });
  return rowCount === 1 ? [written] : null;
}

const writeLocked = ({ pool }: Log, batch: readonly Waiting[]): Promise<readonly StoredVerdict[]> =>
  inTransaction(pool, (client, [, head]) => writeAll(client, batch, after(head)), TAKE_END);

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
  const written = batch.map(({ verdict }) => {
    const stored = signedAt(verdict, place);
    place = { index: stored.index + 1, previousSha256: stored.sha256 };
    return stored;
  });
  const rows = written.map(columnsOf);
  const columns = columnsOf(written[0] as StoredVerdict).map((_, column) => rows.map((row) => row[column]));
  await client.query({ name: "verdict-insert", text: INSERT, values: columns });
  return written;
}

/** The verdict as it stands in its place. */
function signedAt({ signAt, ...verdict }: NewVerdict, place: Place): StoredVerdict {
  return { ...verdict, ...signAt(place), index: place.index, supersededBy: null };
}

/** In the order of both inserts. */
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
