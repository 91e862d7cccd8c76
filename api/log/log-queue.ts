import type pg from "pg";
import type { EntryType } from "../../packages/verifier/src/tlog/entry-types.ts";
import { issuedCertificate } from "../certificates/issued.ts";
import type { Announced, Recorded } from "./entry-documents.ts";
import type { Queued } from "./log-writer.ts";
import { issuedSellerCertificate } from "../sellers/published/document.ts";
import { ISSUED_COLUMNS, type IssuedColumns, parseIssued } from "../certificates/store.ts";
import { bytes } from "../platform/db/connection.ts";
import type { ExamColumns } from "../sellers/store.ts";
import { readEndedExams } from "../sellers/published/store.ts";

type Ask = <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[]) => Promise<pg.QueryResult<Row>>;

/** Rows whose transactions commit late have lower numbers than those that are in the log: nothing is skipped by number. */
const WAITING = `SELECT p.seq, p.type, p.ref, p.at, p.members, e.ref IS NOT NULL AS is_logged
  FROM (SELECT seq, type, ref, at, members FROM log_pending WHERE seq > $1 AND seq <> ALL($3::bigint[]) ORDER BY seq LIMIT $2) AS p
  LEFT JOIN log_entry AS e ON e.type = p.type AND e.ref = p.ref ORDER BY p.seq`;

interface QueueColumns {
  seq: string;
  type: EntryType;
  ref: string;
  at: Date;
  members: Announced["members"] | null;
  is_logged: boolean;
}

const CERTIFICATES = `SELECT ${ISSUED_COLUMNS} FROM certificate c WHERE c.id = ANY($1)`;
const PROOFS = "SELECT certificate, document, published_at FROM published_proof WHERE certificate = ANY($1)";
const SELLER_CORRECTIONS = "SELECT exam, reason, at FROM seller_exam_correction WHERE exam = ANY($1)";
const VERDICTS = "SELECT id, document FROM verdict WHERE id = ANY($1)";
const ofPayments = (table: string) =>
  `SELECT '0x' || encode(payment, 'hex') AS id, document FROM ${table} WHERE payment = ANY($1)`;

type Found = ReadonlyMap<string, Recorded>;

/** How the records of each type are read: many in one statement. */
const READERS: Partial<Record<EntryType, (ask: Ask, refs: readonly string[]) => Promise<Found>>> = {
  async certificate(ask, refs) {
    const { rows } = await ask<IssuedColumns>(CERTIFICATES, [refs]);
    return new Map(
      rows.map((row) => [
        row.id,
        { kind: "certificate", members: issuedCertificate(parseIssued(row)), issuedAt: row.issued_at },
      ]),
    );
  },
  async proof(ask, refs) {
    const { rows } = await ask<{ certificate: string; document: unknown; published_at: Date }>(PROOFS, [refs]);
    return new Map(
      rows.map(({ certificate, document, published_at: publishedAt }) => [
        certificate,
        { kind: "proof", document, publishedAt },
      ]),
    );
  },
  async seller_certificate(ask, refs) {
    const exams = await readEndedExams(async (text, values) => (await ask<ExamColumns>(text, values)).rows, refs);
    return new Map(
      exams.map((exam) => [
        exam.order.id,
        { kind: "seller_certificate", members: issuedSellerCertificate(exam), issuedAt: exam.result.endedAt },
      ]),
    );
  },
  async seller_correction(ask, refs) {
    const { rows } = await ask<{ exam: string; reason: string; at: Date }>(SELLER_CORRECTIONS, [refs]);
    return new Map(rows.map(({ exam, reason, at }) => [exam, { kind: "seller_correction", reason, correctedAt: at }]));
  },
  verdict: (ask, refs) => signed(ask, VERDICTS, refs),
  correction: (ask, refs) => signed(ask, VERDICTS, refs),
  evaluation: (ask, refs) => signed(ask, ofPayments("escrow_evaluation"), refs.map(bytes)),
  contest_answer: (ask, refs) => signed(ask, ofPayments("escrow_contest_answer"), refs.map(bytes)),
};

async function signed(ask: Ask, text: string, keys: readonly unknown[]): Promise<Found> {
  const { rows } = await ask<{ id: string; document: string }>(text, [keys]);
  return new Map(rows.map(({ id, document }) => [id, { kind: "signed", document }]));
}

/** The oldest rows of the queue, with what is recorded of each. */
export async function readWaiting(
  ask: Ask,
  { after, limit, except }: { readonly after: string; readonly limit: number; readonly except: readonly string[] },
): Promise<readonly Queued[]> {
  const { rows } = await ask<QueueColumns>(WAITING, [after, limit, except]);
  const found = new Map<EntryType, Found>();
  for (const type of new Set(rows.map((row) => row.type))) {
    const refs = rows.filter((row) => row.type === type && !row.is_logged).map(({ ref }) => ref);
    const read = READERS[type];
    found.set(type, read === undefined ? new Map() : await read(ask, refs));
  }
  return rows.map(({ is_logged: isLogged, members, ...row }) => ({
    ...row,
    isLogged,
    recorded: isLogged ? null : (found.get(row.type)?.get(row.ref) ?? unread(row.type, members)),
  }));
}

/** What needs no row of its own. */
function unread(type: EntryType, members: QueueColumns["members"]): Recorded | null {
  if (type === "reversal") return { kind: "reversal" };
  return members === null ? null : { kind: "announced", members };
}
