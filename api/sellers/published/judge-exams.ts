import { isCurrent, isVoid, type PublishedExam } from "../record.ts";

/** The state of an exam among its origin's published exams. */
export type ExamState = "counts" | "superseded" | "expired" | "corrected" | "reversed";

export interface JudgedExam {
  readonly exam: PublishedExam;
  readonly state: ExamState;
}

/** A level is a PASS; a complete exam without one is a FAIL. */
export const verdictOf = ({ result }: Pick<PublishedExam, "result">): "pass" | "fail" =>
  result.level === null ? "fail" : "pass";

/** Identifies the request: two exams are of the same request if nothing that is sent differs. */
const requestOf = ({ order: { method, url, body, contentType } }: PublishedExam): string =>
  JSON.stringify([method, url, body, body === null ? null : contentType]);

/**
 * Returns which of an origin's exams count: the newest exam of each request, while it is fresh. So a FAIL counts until
 * it expires or the same request passes. A PASS of another request, or of the same one with another body, does not
 * affect it.
 * @param exams newest first; corrected and reversed ones are ignored, as if they had not taken place
 */
export function judgeExams(exams: readonly PublishedExam[], now: Date): readonly JudgedExam[] {
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

/**
 * Returns the published exams of the same request that ended before this one, newest first, except those that are void.
 */
export const earlierOf = (exam: PublishedExam, exams: readonly PublishedExam[]): readonly PublishedExam[] =>
  exams.filter(
    (one) =>
      !isVoid(one) &&
      one.order.id !== exam.order.id &&
      one.result.endedAt.getTime() <= exam.result.endedAt.getTime() &&
      requestOf(one) === requestOf(exam),
  );
