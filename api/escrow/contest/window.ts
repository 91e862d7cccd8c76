import { CONTEST_ROOM_SECONDS, contestSecondsOf, isBound } from "../../../packages/escrow/src/contest-terms.ts";
import type { HoldState } from "../escrow-ports.ts";
import type { Delivery, StatedContest } from "../evaluation.ts";
import type { PaymentInfo } from "../payment.ts";

/** Why a delivery does not fit the window that the payer signed; no money moves. */
export type WindowRefusal = "window_unsigned" | "no_window" | "wrong_window" | "unbound";

/**
 * What the payer of a delivery may contest; null for nothing. The window is in the terms on the chain, so no version of
 * a delivery leads around it, and the salt proves the conditions: nobody can forward other ones than were paid for.
 */
export function windowOf(
  info: PaymentInfo,
  { contest }: Pick<Delivery, "contest">,
): StatedContest | null | { readonly refused: WindowRefusal } {
  const seconds = contestSecondsOf(info);
  if (contest === null) return seconds === 0 ? null : { refused: "window_unsigned" };
  if (seconds === 0) return { refused: "no_window" };
  if (contest.seconds !== seconds) return { refused: "wrong_window" };
  return isBound(info, contest) ? contest : { refused: "unbound" };
}

/**
 * When a window that opens now closes, in unix seconds of the chain; null if it would leave a release too little time
 * before anyone may refund. A window is never shortened: a merchant could deliver late to be rid of it.
 */
export function closesAt({ time, refundableFrom }: Pick<HoldState, "time" | "refundableFrom">, seconds: number) {
  const until = time + seconds;
  return until + CONTEST_ROOM_SECONDS <= refundableFrom ? until : null;
}
