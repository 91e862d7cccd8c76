import type { Withheld } from "../../platform/http/route.ts";
import { formatUsd } from "../../platform/money.ts";
import type { Hex } from "../../platform/wallet.ts";
import type { Certificate } from "../certificate.ts";
import type { Asked } from "../kinds/kind.ts";
import { type LossyKind, WINDOW_SECONDS } from "../kinds/retry.ts";
import {
  type AnswerContext,
  type Asker,
  alsoOpen,
  answer,
  attemptPath,
  COUNTS_ELSEWHERE,
  type Next,
  opened,
  paidOrder,
  result,
  startAgain,
  testPath,
} from "../sessions/answers.ts";
import { sessionCertificate, shown, signatureFacts } from "../sessions/judge.ts";
import { type Challenge, isLapsed, isOpen, type Session } from "../sessions/session.ts";
import { cameBack, isDelivered, type LostOrder, type OrderNumber, orderOf, windowEnds } from "./lost-order.ts";

export type RetryContext = AnswerContext<LossyKind>;

/** The reasons an order is not sold or not offered. */
export const notOffered = (kind: LossyKind, session: Session): string =>
  `This order is no longer offered because it is paid and its answer was sent, or the session has ended. Get the result from POST ${testPath(kind, session)}/result.`;
export const PAID =
  "This order is paid, and the window of its lost answer is over. Nothing was charged. Send the payment's first header again, or request the result.";

export const orderPath = (
  kind: LossyKind,
  session: Session,
  at: { token: string | null; order: OrderNumber },
): string => `${attemptPath(kind, session, at.token)}&order=${at.order}`;

export const priceOf = ({ orders }: LossyKind, order: OrderNumber): bigint => orders[order - 1] as bigint;

const attempt = ({ kind, session, token, baseUrl }: RetryContext, order: OrderNumber): Next => ({
  method: "POST",
  url: `${baseUrl}${orderPath(kind, session, { token, order })}`,
  cost: formatUsd(priceOf(kind, order)),
});

/** Returns the answer after the entry: buy both orders. */
export const started = (context: RetryContext, other: Session | null) =>
  opened(context, {
    next: attempt(context, 1),
    message: `Buy the order at next.url, then the same with order=2. The answer to one of them gets lost after it was paid. Get it without paying twice, and request the result ${WINDOW_SECONDS} s later. Make all calls from one address. If this answer is also sent to another one, the token counts only from yours.${alsoOpen(other)}`,
  });

/**
 * Returns the answer after an order has settled. It is stored and sent again unchanged. The answer to the lost order
 * arrives only when it is sent again, when the other order may already be paid, so only the result can name the next
 * step.
 */
export function ordered(
  context: RetryContext,
  lost: LostOrder,
  { order, transaction }: { order: OrderNumber; transaction: Hex },
) {
  const isSecondNext = order === 1 && orderOf(context.session, "bait") === 2 && !isDelivered(lost);
  return answer(context, {
    status: "action_required",
    next: isSecondNext ? attempt(context, 2) : result(context),
    deliverable: paidOrder(context, { paid: priceOf(context.kind, order), transaction }),
    armed: true,
    message: isSecondNext
      ? "The order is paid. Buy the second one."
      : `The order is paid. Once both are, request the result ${WINDOW_SECONDS} s after the lost answer.`,
  });
}

/** Returns the answer to a result requested too early or too late. */
export function incomplete(context: RetryContext, lost: LostOrder, { isElsewhere, now }: Asker) {
  const { session } = context;
  const { served } = session;
  const count = (...of: readonly unknown[]) => of.filter((one) => one !== null).length;
  const end = windowEnds(lost);
  return answer(context, {
    status: "incomplete",
    next: isOpen(session, now) && !isElsewhere ? nextStep(context, lost) : startAgain(context),
    deliverable: {
      type: "progress",
      orders_offered: count(served.token.control, served.token.bait),
      orders_paid: count(session.control, lost.paid),
      ...(end === null ? {} : { window_ends: end.toISOString() }),
    },
    armed: isOpen(session, now),
    message: isLapsed(session, now)
      ? `The session timed out at ${session.lapsesAt.toISOString()} without a verdict. No certificate was issued; start a new session.`
      : isElsewhere
        ? COUNTS_ELSEWHERE
        : outstanding(context, lost),
  });
}

/**
 * Returns the remaining step: buy an order, send the lost one's payment again, or wait. Without the token, only waiting
 * is left.
 */
function nextStep(context: RetryContext, lost: LostOrder): Next {
  const { session, token } = context;
  if (lost.secondAt !== null) return startAgain(context);
  if (token === null) return result(context);
  const unpaid = ([1, 2] as const).find((order) =>
    order === orderOf(session, "bait") ? lost.paid === null : session.control === null,
  );
  if (unpaid !== undefined) return attempt(context, unpaid);
  return cameBack(lost) ? result(context) : attempt(context, orderOf(session, "bait"));
}

const WITHOUT_TOKEN =
  "There is no verdict yet. Continue at the next.url from the answer to the start: its orders need the session's token. If you lost that answer, send the start's payment header again.";

function outstanding({ session, token }: RetryContext, lost: LostOrder): string {
  if (lost.secondAt !== null)
    return "This session will not lead to a certificate. A second authorization arrived that is not held against the wallet, because the first one for its order had not settled yet or because the token may be known to strangers. It was not charged.";
  const isUnpaid = session.control === null || lost.paid === null;
  if (token === null && (isUnpaid || !cameBack(lost))) return WITHOUT_TOKEN;
  if (isUnpaid) return "There is no verdict yet: both orders must be paid.";
  if (!cameBack(lost))
    return "There is no verdict yet because the answer to an order is still lost. Send the same payment header again; do not sign a new one.";
  return `There is no verdict yet: the window of the lost order ends at ${windowEnds(lost)?.toISOString()}. Request the result then.`;
}

/** Returns the price of an order and its payee, which is the address that the entry paid. */
export const askedFor = (kind: LossyKind, session: Session, challenge: Challenge): Asked => ({
  payTo: session.entry.settlement.payTo,
  value: priceOf(kind, orderOf(session, challenge)),
});

/** The judged orders and the time. `second` is the authorization that would have paid again; null for a PASS. */
interface Judged {
  readonly lost: LostOrder;
  readonly second: Withheld | null;
  readonly now: Date;
}

/** Returns the certificate of a session: PASS if no second authorization was signed, otherwise FAIL. */
export function judged(kind: LossyKind, session: Session, { lost, second, now }: Judged): Certificate {
  const { paid } = lost;
  if (paid === null) throw new Error(`the session ${session.id} is judged before its order is paid`);
  const result = second === null ? "pass" : "fail";
  const time = (at: Date | null) => at?.toISOString() ?? null;
  return sessionCertificate(kind, session, {
    result,
    checks: { paid_once: result },
    behaviour: {
      session_started: session.startedAt.toISOString(),
      control: {
        ...shown(askedFor(kind, session, "control"), session.served.token.control),
        transaction: session.control?.transaction ?? null,
      },
      bait: {
        ...shown(askedFor(kind, session, "bait"), session.served.token.bait),
        signed: second !== null,
        offered_through: "session_token",
      },
      lost: {
        way: lost.way,
        ...paid,
        lost_at: time(lost.lostAt),
        sent_again_at: time(lost.sentAgainAt),
        asked_at: time(lost.askedAt),
      },
      ...(second === null ? {} : { signature: signatureFacts(second) }),
    },
    now,
  });
}
