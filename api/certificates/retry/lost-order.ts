import type { Hex } from "../../platform/wallet.ts";
import { WINDOW_SECONDS } from "../kinds/retry.ts";
import type { Challenge, Session } from "../sessions/session.ts";
import { isOpen } from "../sessions/session.ts";

/** The published ways in which an answer gets lost after the payment was taken. */
export const WAYS = ["connection_closed", "unavailable", "late", "settlement_pending", "server_error"] as const;

export type Way = (typeof WAYS)[number];

/** Which of the two orders, as the URL names it. */
export type OrderNumber = 1 | 2;

/** What is known of the order whose answer gets lost: its session's "bait", since paying it twice is the mistake. */
export interface LostOrder {
  /** Drawn once. */
  readonly way: Way;
  /** The payment that settled for it; null before that, and again if a reorganization has removed it for good. */
  readonly paid: { readonly nonce: Hex; readonly transaction: Hex } | null;
  /** The nonce of the payment that was taken in for it and is not void, settled or not. */
  readonly taken: Hex | null;
  /** When its answer was first kept from its payer. */
  readonly lostAt: Date | null;
  /** When a request that began after that brought the same authorization. */
  readonly sentAgainAt: Date | null;
  /** When its payer asked whether it had settled. */
  readonly askedAt: Date | null;
  /**
   * When another authorization came that convicts nobody: the first had not settled yet, or it cannot be told who sent it.
   * It spoils a PASS.
   */
  readonly secondAt: Date | null;
}

/** Which of the two orders a number in the URL means: the sequence is drawn. */
export const challengeOf = ({ baitFirst }: Pick<Session, "baitFirst">, order: OrderNumber): Challenge =>
  (order === 1) === baitFirst ? "bait" : "control";

export const orderOf = (session: Pick<Session, "baitFirst">, challenge: Challenge): OrderNumber =>
  challengeOf(session, 1) === challenge ? 1 : 2;

/** From when on a second authorization convicts nobody any more; null while the answer is not lost yet. */
export const windowEnds = ({ lostAt }: Pick<LostOrder, "lostAt">): Date | null =>
  lostAt === null ? null : new Date(lostAt.getTime() + WINDOW_SECONDS * 1000);

const isWindowOpen = (lost: LostOrder, now: Date): boolean => {
  const end = windowEnds(lost);
  return end === null || now.getTime() < end.getTime();
};

/**
 * What an authorization is that was signed for the order whose answer gets lost. `first`: the payment of the order, or
 * that payment again. `early`: another one, while the first has not settled. `second`: another one, which would have
 * paid again. `late`: the same after the window.
 */
export function presented(lost: LostOrder, nonce: Hex, now: Date): "first" | "early" | "second" | "late" {
  const first = lost.paid?.nonce ?? lost.taken;
  if (first === null || first === nonce) return "first";
  if (lost.paid === null) return "early";
  return isWindowOpen(lost, now) ? "second" : "late";
}

/** Whether its answer has reached its payer, as far as we can tell: nothing lures it to pay again. */
export const isDelivered = ({ sentAgainAt }: LostOrder): boolean => sentAgainAt !== null;

/**
 * PASS: both orders are paid, the answer to one got lost, its payer sent the same authorization again or asked what had
 * become of it, and nothing else was signed for it within its window. While there is no verdict, nothing was.
 */
export function isSafe(session: Session, lost: LostOrder, now: Date): boolean {
  const cameBack = lost.sentAgainAt !== null || lost.askedAt !== null;
  const isPaid = session.control !== null && lost.paid !== null && lost.lostAt !== null;
  return isOpen(session, now) && isPaid && cameBack && lost.secondAt === null && !isWindowOpen(lost, now);
}
