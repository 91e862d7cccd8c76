import type { Address } from "../../kernel/wallet.ts";
import type { WebOrigin } from "../../kernel/web-origin.ts";
import type { EndedExam, Exam } from "../record.ts";

/** The exams of an origin that are public, newest first. */
export interface PublishedExams {
  readonly origin: WebOrigin;
  readonly exams: readonly EndedExam[];
}

/** Reads what is public of exams. */
export interface PublishedExamReader {
  /** The newest 100 of an origin, and every one that is fresh. */
  ofOrigin(origin: string, now: Date): Promise<readonly EndedExam[]>;
  /** The newest 100 that were paid to this address, and every one that is fresh. */
  ofPayee(payTo: Address, now: Date): Promise<readonly EndedExam[]>;
}

/** What a correction needs of the store. */
export interface CorrectionStore {
  get(id: string): Promise<Exam | null>;
  /** @returns whether it was added; a correction stands, no matter who came first */
  correct(id: string, reason: string): Promise<boolean>;
}
