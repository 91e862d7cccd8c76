import type { Level } from "../../packages/seller-check/src/exam/level.ts";
import type { CheckResult } from "../../packages/seller-check/src/exam/vocabulary.ts";
import { VALID_FOR_DAYS } from "../certificates/index.ts";
import type { PaymentKey } from "../platform/http/route.ts";
import type { Atomic } from "../platform/money.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { WebOrigin } from "../platform/web/target.ts";

/** How long a published result counts: as long as any certificate. */
export const VALID_DAYS = VALID_FOR_DAYS;

/** The line at the origin that let this buyer order the exam. */
export interface Consent {
  /** Of the file. */
  readonly url: string;
  readonly text: string;
  /** What the record is about: the paths under it. Begins and ends with a slash; `/` is the whole origin. */
  readonly prefix: string;
  /** ISO 8601. */
  readonly expires: string;
}

/** What a record is about: an origin, or the part of it that its operator gave to a buyer. */
export interface Site {
  readonly origin: WebOrigin;
  /** Ends with a slash; `/` is the whole origin. */
  readonly prefix: string;
}

export const siteOf = ({ origin, consent }: Pick<ExamOrder, "origin" | "consent">): Site => ({
  origin: origin as WebOrigin,
  prefix: consent.prefix,
});

/** A site as people read it: a whole origin has no slash at its end. */
export const siteName = ({ origin, prefix }: Site): string => (prefix === "/" ? origin : `${origin}${prefix}`);

export const isExamId = (text: string): boolean => /^[0-9a-f]{32}$/.test(text);

/** The request that is examined. */
export interface ExaminedRequest {
  readonly url: string;
  readonly method: string;
  readonly body: string | null;
  readonly contentType: string;
}

/** An exam as it was bought. It never changes. */
export interface ExamOrder extends ExaminedRequest {
  /** Another route of the origin, at which a payment of this one is presented; null if none was named. */
  readonly other: string | null;
  /** 32 hex digits. */
  readonly id: string;
  readonly origin: string;
  /** What the seller quoted when the exam was ordered: nothing else is ever signed. */
  readonly payTo: Address;
  readonly amount: Atomic;
  readonly consent: Consent;
  /** The payment that bought it, from the wallet that the origin named, and where it settled. */
  readonly payment: PaymentKey;
  readonly settlement: { readonly transaction: Hex; readonly block: number };
  readonly orderedAt: Date;
  /** The corrected exam that it repeats free of charge; `payment` is what that one was bought with. Null for one that was bought. */
  readonly againOf: string | null;
}

/** A payment of an exam as the chain showed it at the exam's end, whatever the seller says of it. */
export interface ChainSettlement {
  readonly nonce: Hex;
  readonly transaction: Hex;
  readonly block: number;
  readonly from: Address;
  readonly to: Address;
  readonly value: Atomic;
}

/**
 * What became of an exam. It never changes. `interrupted`: no run came to its end, and nothing is said about the seller.
 */
export interface ExamResult {
  readonly outcome: "complete" | "interrupted";
  readonly level: Level;
  /** Whether it may be found by its origin and payee: it is complete. By its id alone it always is. */
  readonly isPublic: boolean;
  /** Why it was interrupted; null if it is complete. */
  readonly note: string | null;
  /** One for each check; empty if interrupted. */
  readonly checks: readonly CheckResult[];
  /** SHA-256 of the evidence's text. */
  readonly evidenceSha256: string;
  /** What its payments have taken from our account by its end, in atomic units; null if that is not known. */
  readonly spent: Atomic | null;
  /** Its payments on the chain, in the order of their blocks. */
  readonly settlements: readonly ChainSettlement[];
  /** How many runs it took. */
  readonly runs: number;
  readonly beganAt: Date;
  readonly endedAt: Date;
  /** Null unless it is public. */
  readonly validUntil: Date | null;
}

/** The statement that a result was wrong. The result stays as it is. */
export interface ExamCorrection {
  readonly reason: string;
  readonly at: Date;
  /** The exam free of charge that was granted with it, and its id once it was taken; null if none was. */
  readonly free: { readonly grantedAt: Date; readonly exam: string | null } | null;
}

export interface Exam {
  readonly order: ExamOrder;
  /** Null while it is incomplete. */
  readonly result: ExamResult | null;
  readonly correction: ExamCorrection | null;
  /** When a payment that it rests on was found missing from the chain; null if none was. */
  readonly reversedAt: Date | null;
  /** Why its evidence was removed, and when; null: it was not. */
  readonly removal: { readonly reason: string; readonly at: Date } | null;
  /** Where its buyer was paid back, once that is final. */
  readonly refund: { readonly transaction: Hex; readonly block: number } | null;
}

/** An exam that has come to its end. */
export interface EndedExam extends Exam {
  readonly result: ExamResult;
}

/** A text or a body as it is kept: up to some length, with what tells the rest. */
export interface KeptBody {
  readonly bytes: number;
  /** Of the whole body, in hex. */
  readonly sha256: string;
  /** The beginning, if it is text; null if it is not. */
  readonly text: string | null;
  /** The beginning in base64, if it is not text; null if it is. */
  readonly base64: string | null;
  readonly isWhole: boolean;
}

/** What is kept of an exam: what was sent and answered, and what the chain showed of its payments. */
export interface KeptEvidence {
  readonly exchanges: readonly KeptExchange[];
  readonly settlements: readonly (Omit<ChainSettlement, "value"> & { readonly value: string })[];
}

/** One request with its answer, as the evidence has it. */
export interface KeptExchange {
  /** Findings name it by this. */
  readonly number: number;
  readonly request: {
    readonly method: string;
    /** Without its query. */
    readonly url: string;
    /** SHA-256 in hex; null without a query. */
    readonly querySha256: string | null;
    readonly headers: Readonly<Record<string, string>>;
    /** SHA-256 in hex; null without a body. */
    readonly bodySha256: string | null;
    readonly family?: 4 | 6;
  };
  readonly answer: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: KeptBody;
  } | null;
  /** Why there is no answer; null if there is one. */
  readonly failure: string | null;
}

/** Whether a result counts for nothing, however new it is. */
export const isVoid = ({ correction, reversedAt }: Exam): boolean => correction !== null || reversedAt !== null;

/** Whether a public result still counts. */
export const isCurrent = (exam: Exam, now: Date): boolean =>
  exam.result?.validUntil != null && !isVoid(exam) && now.getTime() < exam.result.validUntil.getTime();
