import type { AssessmentOf, WalletFact } from "../v1/record.ts";
import type { OutcomeFact } from "../v2/record.ts";
import type { SCORE_VERSION } from "./bands.ts";
import type { ScoreFacts, SellerExam } from "./facts.ts";

/** Beside escrow outcomes: what an exam says of the wallet as merchant. It never counts. */
export type ExamFact = { readonly kind: "seller_exam"; readonly counts: false; readonly fresh: boolean } & Pick<
  SellerExam,
  "url" | "origin" | "result" | "level" | "control" | "issued_at" | "valid_until"
>;

/** A whole score record except the hash of its facts. */
export type Assessment = AssessmentOf<typeof SCORE_VERSION, WalletFact | OutcomeFact | ExamFact>;

/** The risk score record as served. */
export type ScoreDocument = Assessment & {
  /** SHA-256 of the RFC 8785 form of `inputs`, in hexadecimal. */
  readonly inputs_sha256: string;
  /** The facts, in the order of `inOrder`: everything needed to recompute the rest. */
  readonly inputs: ScoreFacts;
};
