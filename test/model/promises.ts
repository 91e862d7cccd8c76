import { isAbandoned } from "../../api/payments/step.ts";
import type { Answer } from "../../api/payments/step-types.ts";
import type { View } from "../../api/platform/chain/view.ts";
import {
  type Authorization,
  asRead,
  authorizationOf,
  canSettle,
  isDead,
  isInFlight,
  isPaid,
  type JournalRow,
  type Process,
  type Sent,
  type Surroundings,
  type World,
} from "./world.ts";

/*
 * 1 A client never gets a 402 once its signature may have left us and can still settle.
 * 2 A result is shown only if the payment settled on the chain.
 * 3 One payment buys one result for one request.
 * 4 After settlement, a retry always gets that result.
 * 5 Work is recorded once, even when a process wakes up too late.
 * 6 A wrong signature never gets a result. Another authorization gets one only if it fits.
 * 7 Two payments are two purchases, and a payment is never refused because of another payer's.
 * 8 A settlement that a reorganization removes is marked.
 * 9 Our relayer carries an authorization in one transaction. After a submission was mined without settling, nothing
 *   more is submitted, and the answer reports it.
 * 10 Submitted payments do not exceed the payer's balance, and the number in flight is limited.
 * 11 Work that others notice begins after the settlement is stored.
 *
 * Promise 1 has one exception. An authorization that was mined without settling gets a 402 and may still settle later.
 */

/** An answer with the row that it is about. */
export interface Answered {
  readonly sent: Sent;
  readonly known: JournalRow | null;
  readonly answer: Answer;
  /** Whether it is the run's first command. */
  readonly isFirst: boolean;
  /** Whether this run has stored the result that it returns. */
  readonly stored: boolean;
}

/** Returns the promise that an answer breaks, or null. */
export function brokenBy(now: Surroundings, world: World, answered: Answered): string | null {
  const { sent, known, answer } = answered;
  const paidFor = authorizationOf(now, sent.authorization);
  if (sent.by === "resolver") return answer.type === "done" ? null : "4: a job gives an answer away";
  if (sent.by !== "payer") return answer.type === "result" ? "6: a sender other than the payer got a result" : null;
  switch (answer.type) {
    case "pay":
      return paidFor.left &&
        !paidFor.withoutUs &&
        canSettle(now, paidFor, world) &&
        paidFor.failed === "no" &&
        !sent.otherTerms
        ? "1: a 402 although the signature left us and can still settle"
        : null;
    case "result":
      return brokenByResult(now, answered, answer);
    case "done":
      return "4: a request is answered as if it were a job";
    default:
      if (known?.state === "void" && known.authorization !== sent.authorization)
        return "4: a new payment after a 402 is blocked by the one that is over";
      if (
        answered.isFirst &&
        isHeldUp(answer) &&
        known?.authorization !== sent.authorization &&
        known &&
        isAbandoned(asRead(known))
      )
        return "4: a payment is held up by one that was abandoned before it was submitted";
      return answer.type !== "wait" && isSame(sent, known) && isPaid(paidFor) && !paidFor.told
        ? `4: a retry of a settled payment is refused (${answer.type})`
        : null;
  }
}

const isHeldUp = (answer: Answer): boolean =>
  answer.type === "conflict" || (answer.type === "wait" && answer.because === "held");

const isSame = (sent: Sent, known: JournalRow | null): boolean =>
  known !== null &&
  known.authorization === sent.authorization &&
  known.asks === sent.asks &&
  !sent.otherTerms &&
  (known.paymentId === null || known.paymentId === sent.id);

function brokenByResult(
  now: Surroundings,
  { sent, known, stored }: Answered,
  answer: Extract<Answer, { type: "result" }>,
): string | null {
  if (known === null || known.response === null || !(answer.replay || stored))
    return "5: a result was given that is not the recorded one";
  if (known.authorization !== sent.authorization && (sent.id === null || known.paymentId !== sent.id))
    return "7: two payments were merged into one purchase";
  if (known.authorization !== sent.authorization && (sent.otherTerms || now.clock > 0))
    return "6: an authorization that does not fit got the result of another one";
  if (answer.response.location !== sent.asks) return "3: one payment bought the results of two requests";
  return isPaid(authorizationOf(now, known.authorization)) || now.reorganized
    ? null
    : "2: a result was shown although the payment has not settled";
}

/** Returns the promise that breaks when a signature leaves us, or null. */
export function brokenBySubmitting(now: Surroundings, world: World, { sent, slot }: Process): string | null {
  const own = now.rows[slot] ?? null;
  const one = authorizationOf(now, sent.authorization);
  // A used nonce cannot be used again, so that submission has no effect.
  if (one.onChain !== "unused" || !canSettle(now, one, world)) return null;
  if (one.failed !== "no") return "9: submitted again after it was mined without settling";
  const promised = now.authorizations.filter(({ left, onChain }) => left && onChain === "unused").length;
  if (now.purse !== null && promised + (one.left ? 0 : 1) > now.purse.balance)
    return "10: more is submitted for a payer than its balance covers";
  if (one.told) return "1: submitted after its payer got a 402";
  const twice = now.rows.some(
    (row) => row !== null && row !== own && row.state !== "void" && row.paymentId !== null && row.paymentId === sent.id,
  );
  return twice ? "3: one identifier is paid for twice" : null;
}

export const brokenByEntering = ({ purse, rows }: Surroundings): string | null =>
  purse !== null && rows.filter((row) => row && isInFlight(row)).length > purse.most
    ? "10: more payments are in flight than a payer may have"
    : null;

/** Returns the promise that a wrong lookup breaks, or null. */
export const brokenByLooking = (now: Surroundings, { sent }: Process, view: View): string | null =>
  view.nonce === "reverted" ? brokenByFailure(authorizationOf(now, sent.authorization)) : null;

function brokenByFailure(one: Authorization): string | null {
  if (isPaid(one)) return "1: a 402 although it has settled";
  return one.failed === "mined" ? null : "1: a 402 for a failure that is in no block";
}

/** Our simulation of a payment alone must pass if the payment can settle. */
export const brokenByRefusing = (now: Surroundings, world: World, { sent, slot, command }: Process): string | null =>
  command.type === "write" &&
  command.reason === "refused" &&
  now.rows[slot]?.state === "received" &&
  now.clock === 0 &&
  now.purse === null &&
  !world.refusals &&
  authorizationOf(now, sent.authorization).onChain === "unused"
    ? "7: refused because of another payment"
    : null;

export function brokenByHandling({ tookDead, hasNoted }: Process, { sells }: World): string | null {
  if (tookDead) return "2: work starts although the settlement is finally gone";
  return sells === "noticed by others" && !hasNoted
    ? "11: work that others notice starts before its settlement is stored"
    : null;
}

/**
 * A good end that must remain reachable from every state. `delivered` returns whether an answer in this state contains
 * a payment's result.
 */
export interface Goal {
  readonly name: string;
  readonly needsResolver?: true;
  /** Only in calm worlds, because a payment whose lease expired moves to the last position. */
  readonly needsCalm?: true;
  readonly reached: (now: Surroundings, delivered: (authorization: number) => boolean) => boolean;
}

export const GOALS: readonly Goal[] = [
  {
    name: "4: after a settlement no retry can get the result",
    reached: (now, delivered) =>
      now.authorizations.every(
        (one, index) =>
          delivered(index) ||
          isDead(now, one) ||
          !(one.left || isPaid(one)) ||
          (one.failed !== "no" && !isPaid(one)) ||
          !(now.bodyFits || now.rows.some((row) => row?.authorization === index)),
      ),
  },
  {
    name: "9: a payment was mined without settling, and its payer cannot learn it",
    reached: (now, delivered) =>
      now.authorizations.every((one, index) => one.failed === "no" || one.told || delivered(index)),
  },
  {
    name: "10: no payment can pass if several exceed the balance together",
    needsCalm: true,
    reached: (now, delivered) => now.purse === null || now.authorizations.some((_, index) => delivered(index)),
  },
  {
    name: "8: a sold result cannot become final or reversed",
    needsResolver: true,
    reached: (now) =>
      now.rows.every((row) => {
        if (row === null || row.state !== "fulfilled") return true;
        const { onChain, place } = authorizationOf(now, row.authorization);
        return row.final && onChain === "paid, final" && row.place === place;
      }),
  },
];
