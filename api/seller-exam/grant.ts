import { createHash } from "node:crypto";
import type { ExamOrder } from "./record.ts";

/** What the operator granted with a correction, and what became of it. */
export interface Grant {
  /** In hex. */
  readonly tokenSha256: string;
  /** The exam that was taken for it; null until then. */
  readonly exam: string | null;
}

export interface GrantStore {
  /** Grants an exam free of charge for a corrected one, or replaces its token. @returns false once it was taken */
  grant(exam: string, tokenSha256: string): Promise<boolean>;
  find(exam: string): Promise<Grant | null>;
  /** Adds the order. @returns false if the grant was taken */
  take(order: ExamOrder): Promise<boolean>;
}

/** Of a token, in hex: nothing else of it is kept. */
export const tokenSha256 = (token: string): string => createHash("sha256").update(token).digest("hex");
