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
export async function appendVerdict(
  { signAt, ...reached }: NewVerdict,
  transaction: Transaction,
): Promise<StoredVerdict | null> {
  const end = ends.get(transaction);
  if (end === undefined) throw new Error("a verdict is appended outside the log's queue");
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
