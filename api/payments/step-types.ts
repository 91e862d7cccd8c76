import type { Settlement, View } from "../platform/chain/view.ts";
import type { StoredAnswer } from "../platform/http/answer.ts";
import type { FieldError } from "../platform/http/schema.ts";
import type { Because } from "../platform/relayer/places.ts";
import type { Refusal } from "./refusal.ts";

export type State = "received" | "settling" | "settled" | "fulfilled" | "void";
export type Reason = "refused" | "expired" | "nonce_consumed" | "reverted" | "reversed" | "bait";

/** What a decision needs to know about a journal row. */
export interface Row {
  readonly state: State;
  readonly reason: Reason | null;
  readonly digest: string;
  readonly fingerprint: string;
  readonly paymentId: string | null;
  readonly leaseLive: boolean;
  readonly settlement: Settlement | null;
  readonly final: boolean;
  /** It was void and paid us after all. Its payer was told that it is never submitted. */
  readonly revived: boolean;
  /** Why it was refused before it was submitted; null if it was not. */
  readonly refusal: Refusal | null;
  readonly response: StoredAnswer | null;
}

export type Answer =
  | {
      readonly say: "result";
      readonly response: StoredAnswer;
      readonly settlement: Settlement | null;
      readonly replay: boolean;
    }
  | ({ readonly say: "pay" } & Refusal)
  | {
      readonly say: "wait";
      readonly charged: boolean;
      readonly because: "held" | "crowded" | "unsettled" | "failed" | "unavailable" | Because;
    }
  | { readonly say: "conflict"; readonly detail: string }
  | { readonly say: "malformed" | "unacceptable"; readonly detail: string; readonly errors?: readonly FieldError[] }
  | { readonly say: "over"; readonly detail: string }
  /** Nothing was written, and this payer is not let in for so long. */
  | { readonly say: "barred"; readonly seconds: number }
  | { readonly say: "unavailable"; readonly detail: string }
  | { readonly say: "done" };

export interface Arrival {
  readonly on: "request";
  readonly row: Row | null;
  /** The row that holds the payer's payment identifier, if the authorization itself is unknown. */
  readonly sameId: Row | null;
  readonly signature: "valid" | "invalid";
  readonly digest: string;
  readonly fingerprint: string;
  readonly paymentId: string | null;
  /**
   * The result of the checks for a payment without a row: terms, window, body; terms and window alone if its identifier
   * has bought something. `paid`: its window is closed, and the chain shows that it paid us.
   */
  readonly fresh: "ok" | "paid" | Answer;
}

export type StepEvent =
  | Arrival
  | { readonly on: "resolve"; readonly row: Row }
  | { readonly on: "written"; readonly rows: number }
  | { readonly on: "writeUnknown" }
  /** The payer has too many payments in flight: nothing was written. */
  | { readonly on: "crowded" }
  /** The payer has made too many payments fail on the chain; it is not let in for so long. Nothing was written. */
  | { readonly on: "barred"; readonly seconds: number }
  | { readonly on: "unavailable" }
  | { readonly on: "preflight"; readonly outcome: "ok"; readonly windowOpen: boolean }
  | { readonly on: "preflight"; readonly outcome: "paid" }
  | ({ readonly on: "preflight"; readonly outcome: "refused" } & Refusal)
  | { readonly on: "submitted" }
  /** Nothing was sent, and nothing is stored that could be sent later. */
  | { readonly on: "turnedAway"; readonly because: Because }
  | { readonly on: "chain"; readonly view: View; readonly windowOpen: boolean }
  /** Others may notice the work, or it waits for something: not begun, because the settlement is to be stored first. */
  | { readonly on: "notAtOnce" }
  | { readonly on: "handled" }
  | { readonly on: "handleFailed" }
  | { readonly on: "completed"; readonly response: StoredAnswer };

export interface Write {
  readonly do: "write";
  readonly from: readonly State[];
  readonly to: State;
  readonly reason?: Reason;
  /** Stored with the reason `refused`. */
  readonly refusal?: Refusal;
  readonly settlement?: Settlement;
  readonly final?: true;
  /** It does not count against its payer. */
  readonly excused?: true;
}

export type Command =
  /** Removes the abandoned payment that holds this one's identifier. */
  | { readonly do: "free" }
  | { readonly do: "insert" }
  | { readonly do: "take"; readonly seen: State }
  | { readonly do: "revive" }
  | { readonly do: "release"; readonly failed: boolean }
  | Write
  | { readonly do: "preflight" }
  | { readonly do: "submit" }
  | { readonly do: "look" }
  /** `noted`: this run has stored the settlement. */
  | { readonly do: "handle"; readonly settlement: Settlement; readonly noted: boolean }
  /**
   * One transaction: the sale's record, its answer, and the row's move to fulfilled, from settled, or with a settlement
   * from settling.
   */
  | { readonly do: "complete"; readonly settlement: Settlement | null }
  | { readonly do: "answer"; readonly answer: Answer };

export interface Run {
  readonly row: Row | null;
  /** A job has no client to answer, and never submits a payment that no client retries. */
  readonly job: boolean;
  /** This run has already given the signature to the facilitator. */
  readonly submitted: boolean;
  /** This run has marked a payment as leaving that had never left, in order to submit it. */
  readonly marked: boolean;
  readonly holdsLease: boolean;
  /** The settlement this run has seen. */
  readonly settlement: Settlement | null;
  /** This run has stored it. */
  readonly noted: boolean;
  /** What comes next, in order, once the current command has succeeded. */
  readonly next: readonly Command[];
}

export interface StepDecision {
  readonly run: Run;
  readonly command: Command;
}
