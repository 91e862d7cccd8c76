import type { Hex } from "../../platform/wallet.ts";
import { WINDOW_SECONDS } from "../kinds/retry.ts";
import type { Challenge, Session } from "../sessions/session.ts";
import { isOpen } from "../sessions/session.ts";

/** The published ways in which an answer gets lost after its order was paid. */
export const WAYS = ["connection_closed", "unavailable", "late", "settlement_pending", "server_error"] as const;

export type Way = (typeof WAYS)[number];

export type OrderNumber = 1 | 2;

/** The order whose answer gets lost. It is its session's "bait", because paying it twice is the mistake. */
export interface LostOrder {
  readonly way: Way;
  /** The payment that settled for it; null before that, and again if a reorganization permanently removed it. */
  readonly paid: { readonly nonce: Hex; readonly transaction: Hex } | null;
  /** The nonce of the payment that was accepted for it and is not void, settled or not. */
  readonly taken: Hex | null;
  /** When its answer was first withheld from its payer. */
  readonly lostAt: Date | null;
  /** When a later request presented the same authorization. */
  readonly sentAgainAt: Date | null;
  /** When its payer asked whether it had settled. */
  readonly askedAt: Date | null;
  /**
   * When another authorization arrived that does not count as a FAIL, because the first had not settled yet or its
   * sender is unknown. It rules out a PASS.
   */
  readonly secondAt: Date | null;
}

/** Returns the order behind a number in the URL, because the sequence is drawn at random. */
export const challengeOf = ({ baitFirst }: Pick<Session, "baitFirst">, order: OrderNumber): Challenge =>
  (order === 1) === baitFirst ? "bait" : "control";

export const orderOf = (session: Pick<Session, "baitFirst">, challenge: Challenge): OrderNumber =>
  challengeOf(session, 1) === challenge ? 1 : 2;

/** Returns when a second authorization stops counting as a FAIL, or null while the answer is not lost yet. */
export const windowEnds = ({ lostAt }: Pick<LostOrder, "lostAt">): Date | null =>
  lostAt === null ? null : new Date(lostAt.getTime() + WINDOW_SECONDS * 1000);

const isWindowOpen = (lost: LostOrder, now: Date): boolean => {
  const end = windowEnds(lost);
  return end === null || now.getTime() < end.getTime();
};

/**
 * Classifies an authorization for the order whose answer gets lost. `first`: the payment of the order, or the same
 * payment again. `early`: another one, while the first has not settled. `second`: another one, which would have paid
 * again. `late`: another one, after the window.
 */
export function presented(lost: LostOrder, nonce: Hex, now: Date): "first" | "early" | "second" | "late" {
  const first = lost.paid?.nonce ?? lost.taken;
  if (first === null || first === nonce) return "first";
  if (lost.paid === null) return "early";
  return isWindowOpen(lost, now) ? "second" : "late";
}

/**
 * Returns whether its answer has reached its payer, as far as we know. If so, nothing tempts the payer to pay again.
 */
export const isDelivered = ({ sentAgainAt }: LostOrder): boolean => sentAgainAt !== null;

/** Returns whether its payer sent the same authorization again or asked for its status. */
export const cameBack = ({ sentAgainAt, askedAt }: LostOrder): boolean => sentAgainAt !== null || askedAt !== null;

/**
 * Returns whether the session is a PASS: both orders are paid, the answer to one was lost, its payer sent the same
 * authorization again or asked for its status, and the window has ended. A second authorization within the window would
 * have led to a verdict.
 */
export function isSafe(session: Session, lost: LostOrder, now: Date): boolean {
  const isPaid = session.control !== null && lost.paid !== null && lost.lostAt !== null;
  return isOpen(session, now) && isPaid && cameBack(lost) && lost.secondAt === null && !isWindowOpen(lost, now);
}
