import { answered, type Completion, jsonAnswer, type RecordedAnswer } from "../../kernel/completion.ts";
import { MAIN_NETWORK } from "../../kernel/networks.ts";
import {
  type Loss,
  type Match,
  type Offer,
  Over,
  type PaidRoute,
  type PaymentKey,
  type Sale,
} from "../../kernel/route.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import type { HearAsked } from "../../settlement/asked.ts";
import { complete } from "../behaviour/answers.ts";
import { openSession } from "../behaviour/open-session.ts";
import { type BehaviourParts, ORDER_TIMEOUT_SECONDS } from "../behaviour/run-session.ts";
import { isOpen, type Session } from "../behaviour/session.ts";
import type { Grounds } from "../certificate-store.ts";
import type { TestOrder } from "../erc8004/order.ts";
import { certificateId } from "../issue.ts";
import { retry as kind, LATE_SECONDS } from "../kinds/retry.ts";
import { incomplete, ordered, orderPath, started, type ToldOfOrders } from "./answers.ts";
import { askedFor, judged } from "./judge.ts";
import {
  challengeOf,
  isDelivered,
  isSafe,
  type LostOrder,
  type OrderNumber,
  presented,
  type Way,
} from "./lost-order.ts";
import { type LostOrderStore, paymentIdOf, type Sender } from "./lost-order-store.ts";

export interface RetryParts extends BehaviourParts {
  readonly lostOrders: LostOrderStore;
  /** One of the ways, each as likely as any other. */
  readonly draw: () => Way;
  readonly senderOf: (session: string, client: string) => Sender;
  readonly sleep: (ms: number) => Promise<void>;
  /** How late a late answer comes, in milliseconds; defaults to what is published. */
  readonly lateMs?: number | undefined;
}

/** A session as a caller found it. */
export interface Found {
  readonly session: Session;
  readonly lost: LostOrder;
  readonly token: string | null;
}

/** What the journal stores for an order. */
export interface LossyInput {
  readonly session: string;
  readonly token: string;
  readonly order: OrderNumber;
}

/** An order that is presented with a payment. */
export interface Presentation {
  readonly order: OrderNumber;
  readonly signed: { readonly to: Address; readonly value: bigint; readonly nonce: Hex };
  /** What it is sold by. */
  readonly route: PaidRoute;
  /** Where the request came from. */
  readonly client: string;
}

export interface RetryTests {
  /** The entry has settled, so a session opens. */
  start(sale: Sale<TestOrder>): Promise<Completion>;
  /** The answer to the start, and the token with it, is about to be told again: perhaps to a stranger. */
  toldAgain(entry: PaymentKey): Promise<void>;
  /** An order has settled. */
  order(sale: Sale<LossyInput>): Promise<Completion>;
  /** Null if there is no such session. */
  find(wallet: Address, token: string | null): Promise<Found | null>;
  /** The terms of an order; null if it is no longer offered. */
  serve(found: Found, order: OrderNumber): Promise<Offer | null>;
  /** The same, without a trace. */
  offer(found: Found, order: OrderNumber): Offer;
  match(found: Found, presentation: Presentation): Promise<Match | null>;
  result(found: Found): Promise<object>;
  /** Notes that the payer of a lost order asked whether it has settled. */
  readonly hear: HearAsked;
}

const OVER = "This session has ended: it has a verdict or has timed out. Nothing was charged. Start a new session.";
const PAID =
  "This order is paid, and the window of its lost answer is over. Nothing was charged. Send the payment's first header again, or request the result.";
const SHARED =
  "The answer to this session's start was sent more than once, so its token may be known to strangers: the signature may have been handed in by someone else. Nothing was charged, and no verdict came of it.";

/** How long a second authorization waits until the first has settled or is void, and how often it looks. */
const UNSETTLED_MS = 10_000;
const LOOK_EVERY_MS = 250;

/** The retry safety test: what an agent does when the answer to a paid order gets lost. */
export function createRetryTests(parts: RetryParts): RetryTests {
  const { sessions, lostOrders, certificates, baseUrl, now } = parts;
  const told = ({ session, token }: Pick<Found, "session" | "token">): ToldOfOrders => ({
    kind,
    session,
    token,
    baseUrl,
  });

  const offer = ({ session, token }: Found, order: OrderNumber): Offer => ({
    terms: { network: session.entry.payment.network, ...askedFor(kind, session, challengeOf(session, order)) },
    resource: orderPath(kind, session.wallet, { token, order }),
    description: kind.order,
    maxTimeoutSeconds: ORDER_TIMEOUT_SECONDS,
  });

  return {
    async start(sale) {
      const token = parts.newToken();
      const session = openSession(parts, kind.product, sale);
      const { input: order, settlement } = sale;
      return answered(jsonAnswer(started(told({ session, token }))), [
        sessions.adding(session, parts.tokenSha256(token)),
        lostOrders.adding(session.id, parts.draw()),
        ...(order === null ? [] : parts.publications.ordering(session.id, order, settlement.block)),
      ]);
    },

    toldAgain: (entry) => sessions.share(certificateId(entry, kind.product)),

    async order({ input: { session: id, token, order }, payment: { nonce }, settlement: { transaction } }) {
      const session = await sessions.byId(id);
      if (session === null) throw new Error(`there is no session ${id}`);
      const settling = challengeOf(session, order) === "control" ? sessions.settling : lostOrders.settling;
      const answer = jsonAnswer(ordered(told({ session, token }), { order, transaction }));
      return answered(answer, [settling(id, { nonce, transaction })]);
    },

    async find(wallet, token) {
      const tokenSha256 = token === null ? null : parts.tokenSha256(token);
      const session = await sessions.find(kind.product, wallet, { tokenSha256, now: now() });
      return session === null ? null : { session, lost: await lostOrders.of(session.id), token };
    },

    async serve(found, order) {
      const { session, lost } = found;
      const challenge = challengeOf(session, order);
      const at = { door: "token", now: now() } as const;
      const isOffered = (current: Session) =>
        isOpen(current, at.now) && (challenge === "control" ? current.control === null : !isDelivered(lost));
      const served = await sessions.serve(session.id, at, (current) => (isOffered(current) ? challenge : null));
      return served === null ? null : offer(found, order);
    },

    offer,

    async match(found, presentation) {
      const { session, token } = found;
      const { order, signed, route, client } = presentation;
      const challenge = challengeOf(session, order);
      const asked = askedFor(kind, session, challenge);
      if (signed.to !== asked.payTo || signed.value !== asked.value || session.served.token[challenge] === null)
        return null;
      const over = isOpen(session, now()) ? null : OVER;
      const input = { session: session.id, token, order };
      const common = { offer: offer(found, order), route, purchase: `${session.id}/${order}`, input, over };
      if (challenge === "control") return { ...common, paymentId: `challenge:${session.id}` };
      const settled = { ...found, lost: await settledFirst(parts, found, signed.nonce) };
      const sender = parts.senderOf(session.id, client);
      switch (presented(settled.lost, signed.nonce, now())) {
        case "second":
          return { ...common, paymentId: null, withhold: (second) => convict(parts, settled, { second, sender }) };
        case "late":
          return { ...common, paymentId: null, over: over ?? PAID };
        default: {
          const deliver = (said: "result" | "conflict") =>
            said === "result" ? lose(parts, found, sender) : noteSecond(parts, session, signed.nonce);
          return { ...common, paymentId: paymentIdOf(session.id), deliver };
        }
      }
    },

    async result(found) {
      const { session, lost } = found;
      if (isSafe(session, lost, now())) await pass(parts, session, lost);
      const certificate = await certificates.get(session.id);
      return certificate === null ? incomplete(told(found), lost, now()) : complete(told(found), certificate);
    },

    async hear({ network, from, nonce, at, client }) {
      if (network !== MAIN_NETWORK) return;
      const id = await lostOrders.paidBy(from, nonce);
      if (id !== null) await lostOrders.ask(id, { sender: parts.senderOf(id, client), now: at });
    },
  };
}

/** Another authorization than the one under way waits until it is known what became of that. */
async function settledFirst(
  { lostOrders, sleep, now }: RetryParts,
  { session, lost }: Found,
  nonce: Hex,
): Promise<LostOrder> {
  const deadline = now().getTime() + UNSETTLED_MS;
  let known = lost;
  while (presented(known, nonce, now()) === "early" && now().getTime() < deadline) {
    await sleep(LOOK_EVERY_MS);
    known = await lostOrders.of(session.id);
  }
  return known;
}

/** A conflict with the payment under way: another authorization for the same order. */
async function noteSecond({ lostOrders, now }: RetryParts, { id }: Session, nonce: Hex): Promise<null> {
  if (presented(await lostOrders.of(id), nonce, now()) !== "first") await lostOrders.second(id, now());
  return null;
}

/**
 * The answer gets lost for every request that began before it was lost, and reaches every later one. It is noted first:
 * what a killed process could not lose is lost to the next request.
 */
async function lose(
  { lostOrders, sleep, now, lateMs = LATE_SECONDS * 1000 }: RetryParts,
  { session, lost }: Found,
  sender: Sender,
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

/** PASS, unless there already is a verdict: the first one stands. */
async function pass(parts: RetryParts, session: Session, lost: LostOrder): Promise<void> {
  const { sessions, lostOrders, certificates, now } = parts;
  const at = now();
  await sessions.inTransaction(async (transaction) => {
    const rows = await lostOrders.conclude(session.id, { verdict: "pass", sender: null, now: at }, transaction);
    if (rows === 0) return;
    const { text, values } = certificates.adding(
      judged(kind, session, { lost, second: null, now: at }),
      passRests(session, lost),
    );
    await transaction.query(text, values);
  });
}

/** FAIL: the answer to a second authorization, recorded together with it. */
function convict(
  { lostOrders, certificates, baseUrl, now }: RetryParts,
  { session, lost, token }: Found,
  { second, sender }: { readonly second: Parameters<NonNullable<Match["withhold"]>>[0]; readonly sender: Sender },
): RecordedAnswer {
  const at = now();
  const certificate = judged(kind, session, { lost, second, now: at });
  return {
    answer: jsonAnswer(complete({ kind, session, token, baseUrl }, certificate), {
      location: `/cert/${certificate.id}`,
    }),
    async record(transaction) {
      const rows = await lostOrders.conclude(session.id, { verdict: "fail", sender, now: at }, transaction);
      if (rows === 0) throw new Over(session.tokenShared ? SHARED : OVER);
      const { text, values } = certificates.adding(certificate, failRests(session, lost));
      await transaction.query(text, values);
    },
  };
}

/** A FAIL rests on the entry, and on the payment that a second one would have made again. */
const failRests = ({ entry }: Session, { paid }: LostOrder) => ({ payment: entry.payment, also: paid?.nonce ?? null });

/** A PASS says that both orders were paid, so it rests on the plain one too. */
function passRests({ id, entry: { payment }, control }: Session, { paid }: LostOrder): Grounds {
  if (paid === null || control === null) throw new Error(`the session ${id} passes before both of its orders are paid`);
  return { payment, also: paid.nonce, third: control.nonce };
}
