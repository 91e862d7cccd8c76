import { type NewVerdict, type Place, type StoredVerdict, VERDICT_QUEUE } from "../../arbiter/verdict-store.ts";
import type { Transaction } from "../../kernel/transaction.ts";
import type { Frame } from "./turns.ts";

const COLUMNS = "idx, id, supersedes, category, outcome, request, document, sha256, issued_at";

/** In the order of `COLUMNS`. */
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

/** The end of the log as one transaction knows it: it holds the queue's lock, so nobody else writes meanwhile. */
interface End {
  next: Place;
  /** Verdicts that are written together before the commit. Null where each is written at once. */
  readonly unwritten: StoredVerdict[] | null;
}

const ends = new WeakMap<Transaction, End>();

/** Reads the end of the log in the same message that takes its lock, and writes what a shared transaction has appended. */
const verdictLog: Frame = {
  opening: "SELECT idx, sha256 FROM verdict ORDER BY idx DESC LIMIT 1",
  begin(transaction, { rows, isShared }) {
    const [last] = rows as readonly { readonly idx: string; readonly sha256: string }[];
    const next = { index: Number(last?.idx ?? 0) + 1, previousSha256: last?.sha256 ?? null };
    ends.set(transaction, { next, unwritten: isShared ? [] : null });
  },
  async end(transaction) {
    const unwritten = ends.get(transaction)?.unwritten ?? [];
    // One that is there already would leave a gap, and a successor that names a hash nobody has.
    if (unwritten.length > 0 && (await insert(transaction, unwritten)) < unwritten.length)
      throw new Error("a verdict of a shared transaction is in the log already");
  },
};

export const VERDICT_FRAMES: ReadonlyMap<string, Frame> = new Map([[VERDICT_QUEUE, verdictLog]]);

/**
 * Appends a verdict in a transaction of the queue. Null if it is in the log already; a shared transaction finds that out
 * at its end, and fails.
 */
export async function appendVerdict(verdict: NewVerdict, transaction: Transaction): Promise<StoredVerdict | null> {
  const end = ends.get(transaction);
  if (end === undefined) throw new Error("a verdict is appended outside the log's queue");
  const { signAt, transfer: _, ...reached } = await decidedOnce(verdict, transaction);
  const { index } = end.next;
  const stored: StoredVerdict = { ...reached, ...signAt(end.next), index, supersededBy: null };
  if (end.unwritten === null && (await insert(transaction, [stored])) === 0) return null;
  end.unwritten?.push(stored);
  end.next = { index: index + 1, previousSha256: stored.sha256 };
  return stored;
}

/** Returns how many were not there yet. */
async function insert(transaction: Transaction, verdicts: readonly StoredVerdict[]): Promise<number> {
  const values = verdicts.map(columnsOf);
  let parameters = 0;
  const rows = values.map((row) => `(${row.map(() => `$${++parameters}`)})`);
  const text = `INSERT INTO verdict (${COLUMNS}) VALUES ${rows} ON CONFLICT (id) DO NOTHING`;
  return (await transaction.query(text, values.flat())).rowCount ?? 0;
}

const TAKE = `INSERT INTO verdict_transfer (network, tx, log_index, verdict) VALUES ($1, $2, $3, $4)
  ON CONFLICT (network, tx, log_index) DO NOTHING`;
/** Whose the transfer is, and whether that is the verdict itself or one that it corrects. */
const HOLDER = `WITH RECURSIVE line (id, supersedes) AS (
    SELECT $4::text, $5::text UNION ALL SELECT v.id, v.supersedes FROM verdict v JOIN line ON v.id = line.supersedes)
  SELECT verdict, verdict IN (SELECT id FROM line) AS is_own FROM verdict_transfer
  WHERE network = $1 AND tx = $2 AND log_index = $3`;

/**
 * The verdict, whose transfer is its own now, or the one to be given if another verdict has it. The queue's lock orders
 * everyone who tries, and the row is stored with the verdict or not at all.
 */
async function decidedOnce(verdict: NewVerdict, transaction: Transaction): Promise<NewVerdict> {
  const { id, supersedes, transfer } = verdict;
  if (transfer === undefined) return verdict;
  const key = [transfer.network, Buffer.from(transfer.transaction.slice(2), "hex"), transfer.logIndex, id];
  if ((await transaction.query(TAKE, key)).rowCount === 1) return verdict;
  const { rows } = await transaction.query<{ verdict: string; is_own: boolean }>(HOLDER, [...key, supersedes]);
  const [holder] = rows;
  if (holder === undefined) throw new Error("a transfer is neither free nor anybody's");
  return holder.is_own ? verdict : transfer.decidedBefore(holder.verdict);
}
