import { createHash } from "node:crypto";
import type { ExamOrder } from "./record.ts";

/** What the operator granted with a correction, and what became of it. */
export interface Grant {
  /** In hex. */
  readonly tokenSha256: string;
  /** How many exams that were taken for it something of ours has ended: one more may be taken then. */
  readonly broken: number;
}

export interface GrantStore {
  /** Grants an exam free of charge for a corrected one, or replaces its token. @returns false while one is taken */
  grant(exam: string, tokenSha256: string): Promise<boolean>;
  find(exam: string): Promise<Grant | null>;
  /** Adds the order. @returns false if one was taken, unless something of ours has ended it */
  take(order: ExamOrder): Promise<boolean>;
}

/** Of a token, in hex: nothing else of it is kept. */
export const tokenSha256 = (token: string): string => createHash("sha256").update(token).digest("hex");
