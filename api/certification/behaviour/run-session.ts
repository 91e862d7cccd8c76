import { answered, type Completion, jsonAnswer, type RecordedAnswer } from "../../kernel/completion.ts";
import {
  type Match,
  type Offer,
  Over,
  type PaidRoute,
  type PaymentKey,
  type Sale,
  type Withheld,
} from "../../kernel/route.ts";
import type { Statement, Transaction } from "../../kernel/transaction.ts";
import type { Address } from "../../kernel/wallet.ts";
import type { Certificate } from "../certificate.ts";
import type { CertificateStore } from "../certificate-store.ts";
import type { TestOrder } from "../erc8004/order.ts";
import type { PublicationStore } from "../erc8004/ports.ts";
import { certificateId } from "../issue.ts";
import type { BaitedKind } from "../kinds/behavioural.ts";
import { attemptPath, complete, incomplete, ordered, started, type Told } from "./answers.ts";
import { failed, passed } from "./judge.ts";
import { openSession } from "./open-session.ts";
import {
  askedBy,
  type Challenge,
  type Door,
  isOpen,
  isPassed,
  judgedAt,
  nextChallenge,
  type Session,
  signedFor,
} from "./session.ts";
import type { Decoys, SessionStore } from "./session-store.ts";

export interface BehaviourParts {
  readonly sessions: SessionStore;
  readonly certificates: CertificateStore;
  readonly publications: Pick<PublicationStore, "ordering">;
  readonly decoys: Decoys;
  readonly newToken: () => string;
  readonly tokenSha256: (token: string) => Buffer;
  /** A fair coin. */
  readonly toss: () => boolean;
  readonly baseUrl: string;
  readonly now: () => Date;
}

/** A session as a caller found it. */
export interface Opened {
  readonly session: Session;
  readonly token: string | null;
}

/** What the journal stores for an order: its session, and the token that the answer's `next.url` needs. */
export interface OrderInput {
  readonly session: string;
  readonly token: string | null;
}

export interface BehaviouralTests {
  /** The entry has settled, so a session opens. */
  start(kind: BaitedKind, sale: Sale<TestOrder>): Promise<Completion>;
  /** The answer to the start, and the token with it, is about to be told again: perhaps to a stranger. */
  toldAgain(kind: BaitedKind, entry: PaymentKey): Promise<void>;
  /** The control has settled. */
  order(kind: BaitedKind, sale: Sale<OrderInput>): Promise<Completion>;
  /** Null if there is no such session. */
  find(kind: BaitedKind, wallet: Address, token: string | null): Promise<Opened | null>;
  /** Serves the next challenge; null if the session is over. */
  serve(kind: BaitedKind, opened: Opened): Promise<Offer | null>;
  /** The challenge served last, or the one that would be served next. */
  repeat(kind: BaitedKind, opened: Opened): Offer;
  /** `held`: a bait from the wallet's door, which convicts nobody while the wallet uses a token. */
  match(
    kind: BaitedKind,
    opened: Opened,
    order: {
      readonly signed: { readonly to: Address; readonly value: bigint };
      readonly control: PaidRoute;
      readonly bait: PaidRoute;
    },
  ): Match | "held" | null;
  result(kind: BaitedKind, opened: Opened): Promise<object>;
}

/** How long each order's authorization must stay valid: the same for all, since a difference would give them away. */
export const ORDER_TIMEOUT_SECONDS = 60;
const OVER = "This session has ended: it has a verdict or has timed out. Nothing was charged. Start a new session.";
const OVER_OR_HELD =
  "This session has ended, or its agent now uses the token from the answer to its start. Nothing was charged, and no verdict came of it.";

const SHARED =
  "This session has ended without a verdict. The answer to its start was sent more than once, and anyone who can rebuild that payment from the chain may have its token: the signature may have been handed in by someone else. Nothing was charged. Start a new session, with a payment identifier if the answer may get lost.";

const doorOf = ({ token }: Pick<Opened, "token">): Door => (token === null ? "wallet" : "token");

export function createBehaviour(parts: BehaviourParts): BehaviouralTests {
  const { sessions, certificates, baseUrl, now } = parts;
  const told = (kind: BaitedKind, { session, token }: Opened): Told<BaitedKind> => ({ kind, session, token, baseUrl });

  const offer = (kind: BaitedKind, { session, token }: Opened, challenge: Challenge): Offer => ({
    terms: {
      network: session.entry.payment.network,
      ...askedBy(kind, session, { challenge, door: doorOf({ token }) }),
    },
    resource: attemptPath(kind, session.wallet, token),
    description: kind.order,
    maxTimeoutSeconds: ORDER_TIMEOUT_SECONDS,
  });

  return {
    async start(kind, sale) {
      const token = parts.newToken();
      const session = openSession(parts, kind.product, sale);
      const answer = jsonAnswer(started(told(kind, { session, token })));
      const { input: order, settlement } = sale;
      return answered(answer, [
        sessions.adding(session, parts.tokenSha256(token)),
        // The certificate will have the session's id.
        ...(order === null ? [] : parts.publications.ordering(session.id, order, settlement.block)),
      ]);
    },

    toldAgain: (kind, entry) => sessions.share(certificateId(entry, kind.product)),

    async order(kind, sale) {
      const session = await sessions.byId(sale.input.session);
      if (session === null) throw new Error(`there is no session ${sale.input.session}`);
      const { token } = sale.input;
      const { nonce } = sale.payment;
      const control = { nonce, transaction: sale.settlement.transaction, door: doorOf({ token }) };
      const settled = told(kind, { session: { ...session, control }, token });
      const answer = jsonAnswer(ordered(settled, control.transaction, now()));
      return answered(answer, [sessions.settling(session.id, control)]);
    },

    async find(kind, wallet, token) {
      const tokenSha256 = token === null ? null : parts.tokenSha256(token);
      const session = await sessions.find(kind.product, wallet, { tokenSha256, now: now() });
      return session === null ? null : { session, token };
    },

    async serve(kind, found) {
      const at = { door: doorOf(found), now: now() };
      const choose = (session: Session) => (isOpen(session, at.now) ? nextChallenge(session, at.door) : null);
      const served = await sessions.serve(found.session.id, at, choose);
      return served === null ? null : offer(kind, { ...found, session: served.session }, served.challenge);
    },

    repeat(kind, found) {
      const door = doorOf(found);
      return offer(kind, found, found.session.served[door].last ?? nextChallenge(found.session, door));
    },

    match(kind, found, { signed, control, bait }) {
      const { session } = found;
      const door = doorOf(found);
      const shown = signedFor(kind, session, { ...signed, door });
      if (shown === null) return null;
      const over = isOpen(session, now()) ? null : OVER;
      if (over === null && shown !== "control" && door === "wallet" && session.tokenUsed) return "held";
      if (over === null && shown === "elsewhere") return null;
      const challenge = shown === "control" ? "control" : "bait";
      const input = { session: session.id, token: found.token };
      const common = { offer: offer(kind, found, challenge), purchase: purchaseAt(session, door), input, over };
      return challenge === "control"
        ? { ...common, route: control, paymentId: `challenge:${session.id}` }
        : {
            ...common,
            route: bait,
            paymentId: null,
            withhold: (withheld) => withhold(parts, { ...told(kind, found), door }, withheld),
          };
    },

    async result(kind, found) {
      const { session } = found;
      if (session.verdict === null && isOpen(session, now()) && isPassed(session)) await conclude(parts, kind, session);
      const certificate = await certificates.get(session.id);
      return certificate === null ? incomplete(told(kind, found), now()) : complete(told(kind, found), certificate);
    },
  };
}

/**
 * The answer to a control names the token that its payer used, and a settled payment's header can be rebuilt from the
 * chain. So a payment at one door is another request than the same one at the other.
 */
const purchaseAt = ({ id, decoys }: Session, door: Door): string =>
  door === "token" || decoys.token === decoys.wallet ? id : `${id}/wallet`;

/** PASS, unless there already is a verdict: the first one stands. */
async function conclude({ sessions, certificates, now }: BehaviourParts, kind: BaitedKind, session: Session) {
  await sessions.inTransaction(async (transaction) => {
    const rows = await sessions.conclude(
      session.id,
      { verdict: "pass", door: judgedAt(session), now: now() },
      transaction,
    );
    if (rows === 0) return;
    await write(transaction, certificates.adding(passed(kind, session, now()), rests(session)));
  });
}

/** FAIL: the answer to a signed bait, recorded together with it. */
function withhold(
  { sessions, certificates, now }: BehaviourParts,
  { door, ...told }: Told<BaitedKind> & { readonly door: Door },
  withheld: Withheld,
): RecordedAnswer {
  const { kind, session } = told;
  const certificate: Certificate = failed(kind, session, { withheld, door, now: now() });
  return {
    answer: jsonAnswer(complete(told, certificate), { location: `/cert/${certificate.id}` }),
    async record(transaction) {
      if (door === "token" && session.tokenShared) {
        await sessions.end(session.id, now());
        throw new Over(SHARED);
      }
      const rows = await sessions.conclude(session.id, { verdict: "fail", door, now: now() }, transaction);
      if (rows === 0) throw new Over(door === "token" ? OVER : OVER_OR_HELD);
      await write(transaction, certificates.adding(certificate, rests(session)));
    },
  };
}

const write = (transaction: Transaction, { text, values }: Statement) => transaction.query(text, values);

/** The payments that this session's certificate rests on. */
const rests = ({ entry, control }: Session) => ({ payment: entry.payment, also: control?.nonce ?? null });
