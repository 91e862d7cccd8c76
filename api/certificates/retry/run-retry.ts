import { z } from "zod";
import { sleep } from "../../platform/clock.ts";
import { answered, type Completion, jsonAnswer, type RecordedAnswer } from "../../platform/http/answer.ts";
import {
  type Loss,
  type Match,
  type Offer,
  type PaidRoute,
  type Sale,
  SaleOver,
  type Withheld,
} from "../../platform/http/route.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { HearAsked } from "../../settlement-status/index.ts";
import { retry as kind, LATE_SECONDS, RETRY_COST } from "../kinds/retry.ts";
import {
  type Asking,
  type BehaviorParts,
  ELSEWHERE,
  type Opened,
  ORDER_TIMEOUT_SECONDS,
  OVER,
  refuse,
  SHARED,
  sessionsOf,
  write,
} from "../sessions/run-session.ts";
import { isElsewhere, isOpen, type Session, type Started, senderOf } from "../sessions/session.ts";
import type { Grounds } from "../store.ts";
import {
  askedFor,
  incomplete,
  judged,
  notOffered,
  ordered,
  orderPath,
  PAID,
  priceOf,
  type RetryContext,
  started,
} from "./answers.ts";
import {
  challengeOf,
  isDelivered,
  isSafe,
  type LostOrder,
  type OrderNumber,
  presented,
  WAYS,
  type Way,
} from "./lost-order.ts";
import { type LostOrderStore, paymentIdOf } from "./store.ts";

export interface RetryParts extends BehaviorParts {
  readonly lostOrders: LostOrderStore;
  /** The delay of a late answer, in milliseconds; defaults to the published one. */
  readonly lateMs?: number | undefined;
}

interface OpenedRetry extends Opened {
  readonly lost: LostOrder;
}

/** The input of an order, as the journal stores it. */
export const LOSSY_INPUT = z.object({ session: z.string(), token: z.string(), order: z.literal([1, 2]) });
export type LossyInput = z.infer<typeof LOSSY_INPUT>;

interface Presentation {
  readonly order: OrderNumber;
  readonly signed: { readonly to: Address; readonly value: bigint; readonly nonce: Hex };
  readonly route: PaidRoute;
}

/** How long a second authorization waits until the first has settled or is void, and the interval of its checks. */
const UNSETTLED_LOOKS = 40;
const LOOK_EVERY_MS = 250;

export type RetryTest = ReturnType<typeof createRetryTest>;

/** Creates the retry safety test: what an agent does when the answer to a paid order gets lost. */
export function createRetryTest(parts: RetryParts) {
  const { sessions, lostOrders, verdicts, baseUrl, now, randomBelow } = parts;
  const { open, find, ofOrder, ...common } = sessionsOf(kind, parts);
  const contextOf = (found: Pick<OpenedRetry, "session" | "token">): RetryContext => ({
    ...{ kind, baseUrl, session: found.session, token: found.token },
  });

  const offer = ({ session, token }: OpenedRetry, order: OrderNumber): Offer => ({
    terms: { network: session.entry.payment.network, ...askedFor(kind, session, challengeOf(session, order)) },
    resource: orderPath(kind, session, { token, order }),
    description: kind.order,
    maxTimeoutSeconds: ORDER_TIMEOUT_SECONDS,
  });

  return {
    ...common,
    totalCost: RETRY_COST,
    firstOrder: priceOf(kind, 1),
    start: (sale: Sale<Started>) =>
      open(sale, started, ({ id }) => [lostOrders.adding(id, WAYS[randomBelow(WAYS.length)] as Way)]),

    async order(sale: Sale<LossyInput>): Promise<Completion> {
      const session = await ofOrder(sale);
      const { token, order } = sale.input;
      const { nonce } = sale.payment;
      const { transaction } = sale.settlement;
      const settling = challengeOf(session, order) === "control" ? sessions.settling : lostOrders.settling;
      const lost = await lostOrders.of(session.id);
      const answer = jsonAnswer(ordered(contextOf({ session, token }), lost, { order, transaction }));
      return answered(answer, [settling(session.id, { nonce, transaction })]);
    },

    async find(asked: Asking): Promise<OpenedRetry | null> {
      const found = await find(asked);
      return found && { ...found, lost: await lostOrders.of(found.session.id) };
    },

    /** Returns the terms of an order, or a string that explains why it is not offered. */
    async serve(found: OpenedRetry, order: OrderNumber): Promise<Offer | string> {
      const { session, lost, sender } = found;
      const challenge = challengeOf(session, order);
      const at = { door: "token", sender, now: now() } as const;
      let over = notOffered(kind, session);
      const served = await sessions.serve(session.id, at, (current) => {
        if (isElsewhere(current, at)) over = ELSEWHERE;
        else if (isOpen(current, at.now) && (challenge === "control" ? current.control === null : !isDelivered(lost)))
          return challenge;
        return null;
      });
      return served === null ? over : offer(found, order);
    },

    /** Returns the terms without recording that they were served. */
    offer,

    async match(found: OpenedRetry, presentation: Presentation): Promise<Match | null> {
      const { session, token, sender } = found;
      const { order, signed, route } = presentation;
      const challenge = challengeOf(session, order);
      const asked = askedFor(kind, session, challenge);
      if (signed.to !== asked.payTo || signed.value !== asked.value || session.served.token[challenge] === null)
        return null;
      const over = isOpen(session, now()) ? null : OVER;
      const input = { session: session.id, token, order };
      const common = { offer: offer(found, order), route, purchase: `${session.id}/${order}`, input };
      const first = { paymentId: challenge === "control" ? `challenge:${session.id}` : paymentIdOf(session.id), over };
      const refused = isElsewhere(session, { door: "token", sender })
        ? { ...common, ...first, withhold: refuse, deliver: spoil(parts, found) }
        : null;
      if (challenge === "control") return session.control === null && refused ? refused : { ...common, ...first };
      const settled = { ...found, lost: await settledFirst(parts, found, signed.nonce) };
      const deliver: Match["deliver"] = async (outcome) => {
        if (outcome === "result") return lose(parts, found);
        return outcome === "conflict" ? noteSecond(parts, session, signed.nonce) : null;
      };
      const another = { ...common, paymentId: null, over };
      switch (presented(settled.lost, signed.nonce, now())) {
        case "second":
          return { ...another, withhold: (second) => convict(parts, settled, second), deliver: spoil(parts, found) };
        case "late":
          return { ...another, over: over ?? PAID };
        case "first":
          return refused ?? { ...common, ...first, deliver };
        default:
          return { ...common, ...first, deliver };
      }
    },

    async result(found: OpenedRetry): Promise<object> {
      const { session, lost, token, sender } = found;
      if (isSafe(session, lost, now())) await pass(parts, contextOf(found), lost);
      const verdict = await verdicts.of(contextOf(found));
      if (verdict !== null) return verdict;
      const caller = { door: token === null ? "wallet" : "token", sender } as const;
      const asker = { isElsewhere: isElsewhere(session, caller), now: now() };
      return { ...incomplete(contextOf(found), lost, asker), ...verdicts.help(kind) };
    },

    /** Records that the payer of a lost order asked whether it has settled. */
    hear: (async ({ network, from, nonce, at, client }) => {
      if (network !== parts.mode.network) return;
      const id = await lostOrders.paidBy(from, nonce);
      if (id !== null) await lostOrders.ask(id, { sender: senderOf(from, client), now: at });
    }) satisfies HearAsked,
  };
}

/** An authorization other than the one under way waits until that one's outcome is known. */
async function settledFirst(
  { lostOrders, now }: RetryParts,
  { session, lost }: OpenedRetry,
  nonce: Hex,
): Promise<LostOrder> {
  let known = lost;
  let looks = 0;
  while (presented(known, nonce, now()) === "early" && looks++ < UNSETTLED_LOOKS) {
    await sleep(LOOK_EVERY_MS);
    known = await lostOrders.of(session.id);
  }
  return known;
}

/** Handles a signed order that does not count as a FAIL because its sender is unknown. */
const spoil =
  ({ lostOrders, now }: RetryParts, { session }: OpenedRetry): NonNullable<Match["deliver"]> =>
  async (outcome) => {
    if (outcome === "over") await lostOrders.second(session.id, now());
    return null;
  };

/** Records another authorization for the same order that does not count as a FAIL. */
async function noteSecond({ lostOrders, now }: RetryParts, { id }: Session, nonce: Hex): Promise<null> {
  if (presented(await lostOrders.of(id), nonce, now()) !== "first") await lostOrders.second(id, now());
  return null;
}

/**
 * Loses the answer for every request that began before it was lost; every later request receives it. The loss is
 * recorded first, so that if the process is killed, the next request loses the answer.
 */
async function lose(
  { lostOrders, now, lateMs = LATE_SECONDS * 1000 }: RetryParts,
  { session, lost, sender }: OpenedRetry,
): Promise<Loss | null> {
  if (!isOpen(session, now())) return null;
  const at = { sender, now: now() };
  if (lost.lostAt !== null) {
    await lostOrders.sendAgain(session.id, at);
    return null;
  }
  await lostOrders.lose(session.id, at);
  if (lost.way !== "late") return lost.way;
  await sleep(lateMs);
  return null;
}

/** Records a PASS, unless there is already a verdict, which is final. */
async function pass(parts: RetryParts, context: RetryContext, lost: LostOrder): Promise<void> {
  const { sessions, lostOrders, verdicts, now } = parts;
  const { session } = context;
  const at = now();
  await sessions.inTransaction(async (transaction) => {
    const rows = await lostOrders.conclude(session.id, { verdict: "pass", sender: null, now: at }, transaction);
    if (rows === 0) return;
    const certificate = judged(kind, session, { lost, second: null, now: at });
    await write(
      transaction,
      verdicts.give(context, certificate, { grounds: passGrounds(session, lost), withheld: null }),
    );
  });
}

/** Returns the answer to a second authorization, recorded together with its FAIL. */
function convict(
  { lostOrders, verdicts, baseUrl, now }: RetryParts,
  { session, lost, token, sender }: OpenedRetry,
  second: Withheld,
): RecordedAnswer {
  const at = now();
  const certificate = judged(kind, session, { lost, second, now: at });
  const basis = { grounds: failGrounds(session, lost), withheld: second };
  const given = verdicts.give({ kind, session, token, baseUrl }, certificate, basis);
  return {
    answer: given.answer,
    async record(transaction) {
      const rows = await lostOrders.conclude(session.id, { verdict: "fail", sender, now: at }, transaction);
      if (rows === 0) throw new SaleOver(session.tokenShared ? SHARED : OVER);
      await write(transaction, given);
    },
  };
}

/** A FAIL depends on the entry and on the payment that the second one would have repeated. */
const failGrounds = ({ entry }: Session, { paid }: LostOrder) => ({
  payment: entry.payment,
  also: paid?.nonce ?? null,
});

/** A PASS states that both orders were paid, so it also depends on the plain one. */
function passGrounds({ id, entry: { payment }, control }: Session, { paid }: LostOrder): Grounds {
  if (paid === null || control === null) throw new Error(`the session ${id} passes before both of its orders are paid`);
  return { payment, also: paid.nonce, third: control.nonce };
}
