import type { Address } from "../../platform/wallet.ts";
import type { EndedExam, Exam, Site } from "../record.ts";

/** The public exams that a site's record is made of, newest first. */
export interface PublishedExams {
  readonly site: Site;
  readonly exams: readonly EndedExam[];
}

/** Reads what is public of exams. */
export interface PublishedExamReader {
  /**
   * The newest 100 of a site, and every one that is fresh. Exams of a wider site of the same origin are among them where
   * what they examined lies in this one: nobody escapes a FAIL by asking for less.
   */
  ofSite(site: Site, now: Date): Promise<readonly EndedExam[]>;
  /** The newest 100 that were bought by this address and paid to it, and every one that is fresh. */
  ofPayee(payTo: Address, now: Date): Promise<readonly EndedExam[]>;
}

/** What a correction needs of the store. */
export interface CorrectionStore {
  get(id: string): Promise<Exam | null>;
  /** @returns whether it was added; a correction stands, no matter who came first */
  correct(id: string, reason: string): Promise<boolean>;
}
