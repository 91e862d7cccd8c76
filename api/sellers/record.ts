import type { Level } from "../../packages/seller-check/src/exam/level.ts";
import type { CheckResult } from "../../packages/seller-check/src/exam/vocabulary.ts";
import { VALID_FOR_DAYS } from "../certificates/index.ts";
import type { PaymentKey } from "../platform/http/route.ts";
import type { Atomic } from "../platform/money.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { WebOrigin } from "../platform/web/target.ts";

/** The validity of a published result, which is the same as for any certificate. */
export const VALID_DAYS = VALID_FOR_DAYS;

/** The line at the origin that let this buyer order the exam. */
export interface Consent {
  /** The file's URL. */
  readonly url: string;
  readonly text: string;
  /** The scope of the record: the paths under it. Starts and ends with a slash; `/` is the whole origin. */
  readonly prefix: string;
  /** ISO 8601. */
  readonly expires: string;
}

/** The subject of a record: an origin, or the part of it that its operator opened to a buyer. */
export interface Site {
  readonly origin: WebOrigin;
  /** Ends with a slash; `/` is the whole origin. */
  readonly prefix: string;
}

export const siteOf = ({ origin, consent }: Pick<ExamOrder, "origin" | "consent">): Site => ({
  origin: origin as WebOrigin,
  prefix: consent.prefix,
});

/** Returns a site as people read it: a whole origin has no slash at the end. */
export const siteName = ({ origin, prefix }: Site): string => (prefix === "/" ? origin : `${origin}${prefix}`);

export const isExamId = (text: string): boolean => /^[0-9a-f]{32}$/.test(text);

/** The examined request. */
export interface ExaminedRequest {
  readonly url: string;
  readonly method: string;
  readonly body: string | null;
  readonly contentType: string;
}

/** An exam as it was bought. It never changes. */
export interface ExamOrder extends ExaminedRequest {
  /** Another route of the origin, where a payment for this one is presented; null if none was named. */
  readonly other: string | null;
  /** 32 hex digits. */
  readonly id: string;
  readonly origin: string;
  /** The seller's quote when the exam was ordered. Payments on other terms are never signed. */
  readonly payTo: Address;
  readonly amount: Atomic;
  readonly consent: Consent;
  /** The payment that bought it, from the wallet that the origin named, and its settlement. */
  readonly payment: PaymentKey;
  readonly settlement: { readonly transaction: Hex; readonly block: number };
  readonly orderedAt: Date;
  /**
   * The corrected exam that it repeats free of charge; `payment` is then the one that bought that exam. Null if this
   * exam was bought.
   */
  readonly againOf: string | null;
}

/** A payment of an exam as the chain showed it at the exam's end, regardless of the seller's answers. */
export interface ChainSettlement {
  readonly nonce: Hex;
  readonly transaction: Hex;
  readonly block: number;
  readonly from: Address;
  readonly to: Address;
  readonly value: Atomic;
}

/**
 * The result of an exam, which never changes. `interrupted` means that no run finished, so the seller was not judged.
 */
export interface ExamResult {
  readonly outcome: "complete" | "interrupted";
  readonly level: Level;
  /**
   * Whether it can be found by its origin and payee, which requires that it is complete. With its ID, it can always be
   * found.
   */
  readonly isPublic: boolean;
  /** The reason it was interrupted, or null if it is complete. */
  readonly note: string | null;
  /** One per check. Empty if interrupted. */
  readonly checks: readonly CheckResult[];
  /** SHA-256 of the evidence's text. */
  readonly evidenceSha256: string;
  /** The amount that its payments had taken from our account by its end, in atomic units; null if unknown. */
  readonly spent: Atomic | null;
  /** Its payments on the chain, in block order. */
  readonly settlements: readonly ChainSettlement[];
  /** The number of runs. */
  readonly runs: number;
  readonly beganAt: Date;
  readonly endedAt: Date;
  /** Null unless it is public. */
  readonly validUntil: Date | null;
}

/** The statement that a result was wrong. The result does not change. */
export interface ExamCorrection {
  readonly reason: string;
  readonly at: Date;
  /** The free exam granted with it, and that exam's ID once it was taken; null if none was granted. */
  readonly free: { readonly grantedAt: Date; readonly exam: string | null } | null;
}

export interface Exam {
  readonly order: ExamOrder;
  /** Null while it is incomplete. */
  readonly result: ExamResult | null;
  readonly correction: ExamCorrection | null;
  /** When a payment that it depends on was found missing from the chain, or null. */
  readonly reversedAt: Date | null;
  /** Why and when its evidence was removed; null if it was not. */
  readonly removal: { readonly reason: string; readonly at: Date } | null;
  /** The refund to its buyer, once that is final. */
  readonly refund: { readonly transaction: Hex; readonly block: number } | null;
}

/** An exam with a public result. */
export interface PublishedExam extends Exam {
  readonly result: ExamResult & { readonly validUntil: Date };
}

/** Returns whether a result does not count, however new it is. */
export const isVoid = ({ correction, reversedAt }: Exam): boolean => correction !== null || reversedAt !== null;

/** Returns whether a public result still counts. */
export const isCurrent = (exam: PublishedExam, now: Date): boolean =>
  !isVoid(exam) && now.getTime() < exam.result.validUntil.getTime();

/** Returns an exam with its public result, or null if it is not published. */
export function published(exam: Exam): PublishedExam | null {
  const { result } = exam;
  return result?.validUntil == null ? null : { ...exam, result: { ...result, validUntil: result.validUntil } };
}
