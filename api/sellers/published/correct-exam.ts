import type { EndedExam } from "../record.ts";
import type { CorrectionStore } from "./published-exams.ts";

export type ExamCorrected =
  | { readonly corrected: EndedExam }
  | { readonly refused: "unknown" | "not_published" }
  | { readonly refused: "corrected"; readonly reason: string };

/**
 * Says beside a published exam that the examiner was wrong, and why: once, for good, in public. The result stays as it is
 * and counts for nothing any more. A seller who disagrees, or who has mended a fault, buys a new exam.
 */
export async function correctExam(store: CorrectionStore, id: string, reason: string): Promise<ExamCorrected> {
  const exam = await store.get(id);
  if (exam === null) return { refused: "unknown" };
  const { result, correction } = exam;
  if (correction !== null) return { refused: "corrected", reason: correction.reason };
  if (result === null || !result.isPublic) return { refused: "not_published" };
  if (await store.correct(id, reason)) return { corrected: { ...exam, result } };
  return { refused: "corrected", reason: (await store.get(id))?.correction?.reason ?? "" };
}
