import type { Statement } from "../platform/db/transaction.ts";
import type { Exam, ExamOrder, ExamResult } from "./record.ts";

/** A result with its evidence, JSON of `KeptEvidence` as text. */
export interface NewResult extends ExamResult {
  readonly evidence: string;
  /**
   * What we owe for one that something of ours ended. `refund`: it stays under work until its buyer has been paid back.
   * `another`: it was free of charge, and may be taken again. Absent for everything else.
   */
  readonly owes?: "refund" | "another" | undefined;
}

/** Exams as they are kept. Orders and results are added, and never changed. */
export interface ExamStore {
  /** The writes that add one: the order, and the work that it means. */
  adding(order: ExamOrder): readonly Statement[];
  /**
   * Adds the result and ends the work, unless a refund is owed; both or neither.
   * @returns whether this run still held the exam; without its lease nothing is written
   */
  complete(id: string, run: string, result: NewResult): Promise<boolean>;
  get(id: string): Promise<Exam | null>;
  /** JSON of `KeptEvidence`, as it is hashed; null while there is no result. */
  evidence(id: string): Promise<string | null>;
}
