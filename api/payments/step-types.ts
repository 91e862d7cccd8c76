import type { Settlement, View } from "../platform/chain/view.ts";
import type { StoredAnswer } from "../platform/http/answer.ts";
import type { FieldError } from "../platform/http/schema.ts";
import type { Because } from "../platform/relayer/places.ts";
import type { Refusal } from "./refusal.ts";

export type State = "received" | "settling" | "settled" | "fulfilled" | "void";
export type Reason = "refused" | "expired" | "nonce_consumed" | "reverted" | "reversed" | "bait";

/** The parts of a journal row that decisions depend on. */
export interface Row {
  readonly state: State;
  readonly reason: Reason | null;
  readonly digest: string;
  readonly fingerprint: string;
  readonly paymentId: string | null;
  readonly leaseLive: boolean;
  readonly settlement: Settlement | null;
  readonly final: boolean;
  /** Whether it was void and still paid us. Its payer knows that it is never submitted. */
  readonly revived: boolean;
  /** Why it was refused before submission; null if it was not. */
  readonly refusal: Refusal | null;
  readonly response: StoredAnswer | null;
}

export type Answer =
  | {
      readonly type: "result";
      readonly response: StoredAnswer;
      readonly settlement: Settlement | null;
      readonly replay: boolean;
    }
  | ({ readonly type: "pay" } & Refusal)
  | {
      readonly type: "wait";
      readonly charged: boolean;
      readonly because: "held" | "crowded" | "unsettled" | "failed" | "unavailable" | Because;
    }
  | { readonly type: "conflict"; readonly detail: string }
  | { readonly type: "malformed" | "unacceptable"; readonly detail: string; readonly errors?: readonly FieldError[] }
  | { readonly type: "over"; readonly detail: string }
  /** Nothing was written, and the payer is barred for this long. */
  | { readonly type: "barred"; readonly seconds: number }
  | { readonly type: "unavailable"; readonly detail: string }
  | { readonly type: "done" };

export interface Arrival {
  readonly type: "request";
  readonly row: Row | null;
  /** The row that holds the payer's payment identifier, if the authorization itself is unknown. */
  readonly sameId: Row | null;
  readonly signature: "valid" | "invalid";
  readonly digest: string;
  readonly fingerprint: string;
  readonly paymentId: string | null;
  /**
   * The result of the checks for a payment without a row: terms, window, and body, or only terms and window if its
   * identifier has bought something. `paid`: its window is closed, and the chain shows that it paid us.
   */
  readonly fresh: "ok" | "paid" | Answer;
}

export type StepEvent =
  | Arrival
  | { readonly type: "resolve"; readonly row: Row }
  | { readonly type: "written"; readonly rows: number }
  | { readonly type: "writeUnknown" }
  /** The payer has too many payments in flight. Nothing was written. */
  | { readonly type: "crowded" }
  /** Too many of the payer's payments have failed on the chain, so it is barred for this long. Nothing was written. */
  | { readonly type: "barred"; readonly seconds: number }
  | { readonly type: "unavailable" }
  | { readonly type: "preflight"; readonly outcome: "ok"; readonly windowOpen: boolean }
  | { readonly type: "preflight"; readonly outcome: "paid" }
  | ({ readonly type: "preflight"; readonly outcome: "refused" } & Refusal)
  | { readonly type: "submitted" }
  /** Not sent, and nothing is stored that could be sent later. */
  | { readonly type: "turnedAway"; readonly because: Because }
  | { readonly type: "chain"; readonly view: View; readonly windowOpen: boolean }
  /** Not started, because the work is visible to others or waits, so the settlement must be stored first. */
  | { readonly type: "notImmediate" }
  | { readonly type: "handled" }
  | { readonly type: "handleFailed" }
  | { readonly type: "completed"; readonly response: StoredAnswer };

export interface Write {
  readonly type: "write";
  readonly from: readonly State[];
  readonly to: State;
  readonly reason?: Reason;
  /** Stored with the reason `refused`. */
  readonly refusal?: Refusal;
  readonly settlement?: Settlement;
  readonly final?: true;
  /** The failure does not count against the payer. */
  readonly excused?: true;
}

export type Command =
  /** Removes the abandoned payment that holds this one's identifier. */
  | { readonly type: "free" }
  | { readonly type: "insert" }
  | { readonly type: "take"; readonly seen: State }
  | { readonly type: "revive" }
  | { readonly type: "release"; readonly failed: boolean }
  | Write
  | { readonly type: "preflight" }
  | { readonly type: "submit" }
  | { readonly type: "look" }
  /** `noted`: this run has stored the settlement. */
  | { readonly type: "handle"; readonly settlement: Settlement; readonly noted: boolean }
  /**
   * One transaction: the sale's record, its answer, and the row's move to fulfilled, from settled, or from settling
   * together with a settlement.
   */
  | { readonly type: "complete"; readonly settlement: Settlement | null }
  | { readonly type: "answer"; readonly answer: Answer };

export interface Run {
  readonly row: Row | null;
  /** A job has no client to answer, and never submits a payment that no client retries. */
  readonly job: boolean;
  /** This run has already given the signature to the facilitator. */
  readonly submitted: boolean;
  /** This run has moved a payment that had never left us to settling, in order to submit it. */
  readonly marked: boolean;
  readonly holdsLease: boolean;
  /** The settlement this run has seen. */
  readonly settlement: Settlement | null;
  /** This run has stored the settlement. */
  readonly noted: boolean;
  /** The commands that follow once the current one has succeeded. */
  readonly next: readonly Command[];
}

export interface StepDecision {
  readonly run: Run;
  readonly command: Command;
}
