import { jsonAnswer, type KnownCompletion } from "../../platform/http/answer.ts";
import type { Withheld } from "../../platform/http/route.ts";
import type { Certificate } from "../certificate.ts";
import type { BehavioralKind } from "../kinds/kind.ts";
import type { CertificateStore, Grounds } from "../store.ts";
import { type AnswerContext, complete } from "./answers.ts";
import { type PassingCode, rehearsed } from "./rehearsal.ts";
import type { SessionStore } from "./store.ts";

export interface Basis {
  readonly grounds: Grounds;
  /** The order that was signed although it should have been refused; null for a PASS. */
  readonly withheld: Withheld | null;
}

/** The destination of verdicts: the record, or only the caller. */
export interface Verdicts {
  /** Returns the answer with a verdict, and the writes that store it. */
  give(context: AnswerContext, certificate: Certificate, basis: Basis): KnownCompletion;
  /** Returns the answer of a session that has a verdict, or null. */
  of(context: AnswerContext): Promise<object | null>;
  /** Returns the additional members of an answer without a verdict. */
  help(kind: BehavioralKind): object;
}

export const recordedVerdicts = (certificates: CertificateStore): Verdicts => ({
  give: (context, certificate, { grounds }) => ({
    answer: jsonAnswer(complete(context, certificate), { location: `/cert/${certificate.id}` }),
    writes: [certificates.adding(certificate, grounds)],
  }),
  async of(context) {
    const certificate = await certificates.get(context.session.id);
    return certificate === null ? null : complete(context, certificate);
  },
  help: () => ({}),
});

/**
 * Returns a verdict only to its caller and stores it only in the session's row. Wipes the signature of a refused order.
 */
export const rehearsedVerdicts = (
  sessions: Pick<SessionStore, "byId" | "wiping">,
  passingCode: PassingCode,
): Verdicts => ({
  give: (context, { result }, { withheld }) => ({
    answer: jsonAnswer(rehearsed(context, result, passingCode)),
    writes: withheld === null ? [] : [sessions.wiping(withheld.payment)],
  }),
  async of(context) {
    const session = await sessions.byId(context.session.id);
    if (session === null || session.verdict === null) return null;
    return rehearsed({ ...context, session }, session.verdict, passingCode);
  },
  help: ({ product }) => ({ passing_code: passingCode(product) }),
});
