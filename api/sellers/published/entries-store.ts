import type { EntryReaders } from "../../log/index.ts";
import type { ExamColumns } from "../exam-store.ts";
import { issuedSellerCertificate } from "./document.ts";
import { readEndedExams } from "./store.ts";

const CORRECTIONS = "SELECT exam, reason, at FROM seller_exam_correction WHERE exam = ANY($1)";

/** Reads certificates of sellers and their corrections as log entries. */
export const sellerEntries: EntryReaders = {
  async seller_certificate(ask, refs) {
    const exams = await readEndedExams(async (text, values) => (await ask<ExamColumns>(text, values)).rows, refs);
    return new Map(
      exams.map((exam) => [
        exam.order.id,
        { type: "seller_certificate", members: issuedSellerCertificate(exam), issuedAt: exam.result.endedAt },
      ]),
    );
  },
  async seller_correction(ask, refs) {
    const { rows } = await ask<{ exam: string; reason: string; at: Date }>(CORRECTIONS, [refs]);
    return new Map(rows.map(({ exam, reason, at }) => [exam, { type: "seller_correction", reason, correctedAt: at }]));
  },
};
