import { type EndedExam, isCurrent, isVoid } from "../record.ts";

/** What an origin's published exams may say of one of them. */
export type ExamState = "counts" | "superseded" | "expired" | "corrected" | "reversed";

export interface JudgedExam {
  readonly exam: EndedExam;
  readonly state: ExamState;
}

/** A level is a PASS; a complete exam without one is a FAIL. */
export const verdictOf = ({ result }: Pick<EndedExam, "result">): "pass" | "fail" =>
  result.level === null ? "fail" : "pass";

/** Two exams are of the same request if nothing that is sent differs. */
const requestOf = ({ order: { method, url, body, contentType } }: EndedExam): string =>
  JSON.stringify([method, url, body, body === null ? null : contentType]);

/**
 * Which of an origin's exams count: of each request the newest one, while it is fresh. So a FAIL stands until it expires
 * or the same request passes; a PASS of another request, or of the same with another body, does not touch it.
 * @param exams newest first; corrected and reversed ones count for nothing, as if they had not been held
 */
export function judgeExams(exams: readonly EndedExam[], now: Date): readonly JudgedExam[] {
  const seen = new Set<string>();
  return exams.map((exam) => {
    if (exam.correction !== null) return { exam, state: "corrected" };
    if (exam.reversedAt !== null) return { exam, state: "reversed" };
    const request = requestOf(exam);
    if (seen.has(request)) return { exam, state: "superseded" };
    seen.add(request);
    return { exam, state: isCurrent(exam, now) ? "counts" : "expired" };
  });
}

/** Published exams of the same request that ended before this one, newest first, without those that count for nothing. */
export const earlierOf = (exam: EndedExam, exams: readonly EndedExam[]): readonly EndedExam[] =>
  exams.filter(
    (one) =>
      !isVoid(one) &&
      one.order.id !== exam.order.id &&
      one.result.endedAt.getTime() <= exam.result.endedAt.getTime() &&
      requestOf(one) === requestOf(exam),
  );
