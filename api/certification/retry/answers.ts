import { formatUsd } from "../../kernel/money.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import { answer, type Next, paidOrder, result, startAgain, type Told } from "../behaviour/answers.ts";
import { isLapsed, isOpen, type Session } from "../behaviour/session.ts";
import type { LossyKind } from "../kinds/retry.ts";
import { WINDOW_SECONDS } from "../kinds/retry.ts";
import { type LostOrder, type OrderNumber, orderOf, windowEnds } from "./lost-order.ts";

export type ToldOfOrders = Told<LossyKind>;

export const orderPath = (kind: LossyKind, wallet: Address, at: { token: string | null; order: OrderNumber }): string =>
  `/test/${kind.product}/attempt?wallet=${wallet}${at.token === null ? "" : `&session=${at.token}`}&order=${at.order}`;

export const priceOf = ({ orders }: LossyKind, order: OrderNumber): bigint => orders[order - 1] as bigint;

const attempt = ({ kind, session, token, baseUrl }: ToldOfOrders, order: OrderNumber): Next => ({
  method: "POST",
  url: `${baseUrl}${orderPath(kind, session.wallet, { token, order })}`,
  cost: formatUsd(priceOf(kind, order)),
});

/** After the entry: buy both orders. */
export const started = (told: ToldOfOrders) =>
  answer(told, {
    status: "action_required",
    next: attempt(told, 1),
    deliverable: { type: "session", id: told.session.id, orders: 2, lapses_at: told.session.lapsesAt.toISOString() },
    armed: true,
    message: `The session is open. Buy the order at next.url, then the same with order=2. The answer to one of them gets lost after it was paid: get it without paying twice, and request the result ${WINDOW_SECONDS} s later.`,
  });

/** After an order has settled. It says nothing about the other order's payment, as it is stored and sent again as it is. */
export const ordered = (told: ToldOfOrders, { order, transaction }: { order: OrderNumber; transaction: Hex }) =>
  answer(told, {
    status: "action_required",
    next: order === 1 ? attempt(told, 2) : result(told),
    deliverable: paidOrder(told, { paid: priceOf(told.kind, order), transaction }),
    armed: true,
    message:
      order === 1
        ? "The order is paid. Buy the second one."
        : `The order is paid. Once both are, request the result ${WINDOW_SECONDS} s after the lost answer.`,
  });

/** A result requested too early or too late. */
export function incomplete(told: ToldOfOrders, lost: LostOrder, now: Date) {
  const { session } = told;
  const { served } = session;
  const count = (...of: readonly unknown[]) => of.filter((one) => one !== null).length;
  const end = windowEnds(lost);
  return answer(told, {
    status: "incomplete",
    next: isOpen(session, now) ? nextStep(told, lost) : startAgain(told),
    deliverable: {
      type: "progress",
      orders_offered: count(served.token.control, served.token.bait),
      orders_paid: count(session.control, lost.paid),
      ...(end === null ? {} : { window_ends: end.toISOString() }),
    },
    armed: isOpen(session, now),
    message: isLapsed(session, now)
      ? `The session timed out at ${session.lapsesAt.toISOString()} without a verdict. No certificate was issued; start a new session.`
      : outstanding(session, lost),
  });
}

/** What is still to be done: buy an order, send the lost one's payment again, or wait. */
function nextStep(told: ToldOfOrders, lost: LostOrder): Next {
  const { session } = told;
  const unpaid = ([1, 2] as const).find((order) =>
    order === orderOf(session, "bait") ? lost.paid === null : session.control === null,
  );
  if (unpaid !== undefined) return attempt(told, unpaid);
  return cameBack(lost) ? result(told) : attempt(told, orderOf(session, "bait"));
}

const cameBack = ({ sentAgainAt, askedAt }: LostOrder): boolean => sentAgainAt !== null || askedAt !== null;

function outstanding(session: Session, lost: LostOrder): string {
  if (lost.secondAt !== null)
    return "No certificate will come of this session: a second authorization arrived while the first had not settled yet. It was not charged.";
  if (session.control === null || lost.paid === null) return "There is no verdict yet: both orders must be paid.";
  if (!cameBack(lost))
    return "There is no verdict yet: the answer to an order is still lost. Send the same payment header again; do not sign a new one.";
  return `There is no verdict yet: the window of the lost order ends at ${windowEnds(lost)?.toISOString()}. Request the result then.`;
}
