import { jsonAnswer, type KnownCompletion } from "../../platform/http/answer.ts";
import type { Withheld } from "../../platform/http/route.ts";
import type { Certificate } from "../certificate.ts";
import type { BehavioralKind } from "../kinds/kind.ts";
import type { CertificateStore, Grounds } from "../store.ts";
import { complete, type Told } from "./answers.ts";
import { type PassingCode, rehearsed } from "./rehearsal.ts";
import type { SessionStore } from "./store.ts";

/** What a session was judged by. */
export interface Basis {
  readonly grounds: Grounds;
  /** The order that was signed although it should not be; null for a PASS. */
  readonly withheld: Withheld | null;
}

/** Where verdicts go: to the record, or to the caller alone. */
export interface Verdicts {
  /** The answer with a verdict, and what is stored with it. */
  give(told: Told, certificate: Certificate, basis: Basis): KnownCompletion;
  /** The answer of a session that has a verdict; null if it has none. */
  of(told: Told): Promise<object | null>;
  /** What an answer without a verdict has as well. */
  help(kind: BehavioralKind): object;
}

/** A verdict becomes a certificate. */
export const recordedVerdicts = (certificates: CertificateStore): Verdicts => ({
  give: (told, certificate, { grounds }) => ({
    answer: jsonAnswer(complete(told, certificate), { location: `/cert/${certificate.id}` }),
    writes: [certificates.adding(certificate, grounds)],
  }),
  async of(told) {
    const certificate = await certificates.get(told.session.id);
    return certificate === null ? null : complete(told, certificate);
  },
  help: () => ({}),
});

/** A verdict is told, and leaves only the session's row. The signature of a refused order is wiped. */
export const rehearsedVerdicts = (
  sessions: Pick<SessionStore, "byId" | "wiping">,
  passingCode: PassingCode,
): Verdicts => ({
  give: (told, { result }, { withheld }) => ({
    answer: jsonAnswer(rehearsed(told, result, passingCode)),
    writes: withheld === null ? [] : [sessions.wiping(withheld.payment)],
  }),
  async of(told) {
    const session = await sessions.byId(told.session.id);
    if (session === null || session.verdict === null) return null;
    return rehearsed({ ...told, session }, session.verdict, passingCode);
  },
  help: ({ product }) => ({ passing_code: passingCode(product) }),
});
