import type { Transaction } from "../../platform/db/connection.ts";
import {
  answered,
  type Completion,
  jsonAnswer,
  type KnownCompletion,
  type RecordedAnswer,
} from "../../platform/http/answer.ts";
import {
  type Match,
  type Offer,
  type PaidRoute,
  type PaymentKey,
  type Sale,
  SaleOver,
  type Withheld,
} from "../../platform/http/route.ts";
import type { Address } from "../../platform/wallet.ts";
import type { PublicationStore } from "../agent-registries/store.ts";
import { certificateId } from "../issue.ts";
import type { BaitedKind } from "../kinds/kind.ts";
import { attemptPath, incomplete, ordered, started, type Told, testPath } from "./answers.ts";
import { failed, passed } from "./judge.ts";
import type { TestMode } from "./mode.ts";
import {
  askedBy,
  type Caller,
  type Challenge,
  type Door,
  isElsewhere,
  isOpen,
  isPassed,
  judgedAt,
  nextChallenge,
  openSession,
  type Sender,
  type Session,
  type Started,
  senderOf,
  signedFor,
} from "./session.ts";
import type { Decoys, SessionStore } from "./store.ts";
import type { Verdicts } from "./verdicts.ts";

export interface BehaviorParts {
  readonly mode: TestMode;
  readonly sessions: SessionStore;
  readonly verdicts: Verdicts;
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
  readonly sender: Sender;
}

/** What the journal stores for an order: its session, and the token that the answer's `next.url` needs. */
export interface OrderInput {
  readonly session: string;
  readonly token: string | null;
}

/** Who asks for which session. `token` is null for a caller who names the wallet alone. */
export interface Asking {
  readonly wallet: Address;
  readonly token: string | null;
  readonly client: string;
}

export interface BehavioralTests {
  /** The entry has settled, so a session opens. */
  start(kind: BaitedKind, sale: Sale<Started>): Promise<Completion>;
  /** The answer to the start, and the token with it, is about to be told to a client: perhaps to a stranger. */
  told(kind: BaitedKind, entry: PaymentKey, client: string): Promise<void>;
  /** The control has settled. */
  order(kind: BaitedKind, sale: Sale<OrderInput>): Promise<Completion>;
  /** Null if there is no such session. */
  find(kind: BaitedKind, asked: Asking): Promise<Opened | null>;
  /** Serves the next challenge; a string says why none is served. */
  serve(kind: BaitedKind, opened: Opened): Promise<Offer | string>;
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

/** For a call with a token that strangers may have. */
export const ELSEWHERE =
  "The answer to this session's start was sent to more than one address, so its token may be known to strangers and counts only from the address that used it before. Nothing was charged. Go on from there, or start a new session, with a payment identifier, and make all calls from one address.";
export const SHARED =
  "This session gives no certificate any more. The answer to its start was sent to more than one address, so its token may be known to strangers: the order may have been handed in by someone else. Nothing was charged. Start a new session, with a payment identifier, and make all calls from one address.";
const OVERS: Readonly<Record<Door, string>> = { token: OVER, wallet: OVER_OR_HELD };
const ASIDE =
  "This wallet uses the token of a session, so an order that is paid without it counts for nothing. Nothing was charged. Pay at the next.url from the answer to the start.";

const doorOf = ({ token }: Pick<Opened, "token">): Door => (token === null ? "wallet" : "token");
const callerOf = ({ token, sender }: Opened): Caller => ({ door: doorOf({ token }), sender });

export function createBehavior(parts: BehaviorParts): BehavioralTests {
  const { sessions, verdicts, baseUrl, now } = parts;
  const told = (kind: BaitedKind, { session, token }: Pick<Opened, "session" | "token">): Told<BaitedKind> => ({
    kind,
    session,
    token,
    baseUrl,
  });

  const offer = (
    kind: BaitedKind,
    { session, token }: Pick<Opened, "session" | "token">,
    challenge: Challenge,
  ): Offer => ({
    terms: {
      network: session.entry.payment.network,
      ...askedBy(kind, session, { challenge, door: doorOf({ token }) }),
    },
    resource: attemptPath(kind, session, token),
    description: kind.order,
    maxTimeoutSeconds: ORDER_TIMEOUT_SECONDS,
  });

  return {
    async start(kind, sale) {
      const token = parts.newToken();
      const session = openSession(parts, kind.product, sale);
      const answer = jsonAnswer(started(told(kind, { session, token }), await otherOpen(parts, session)));
      const { settlement } = sale;
      const { order } = sale.input;
      return answered(answer, [
        sessions.adding(session, parts.tokenSha256(token)),
        // The certificate will have the session's id.
        ...(order === null ? [] : parts.publications.ordering(session.id, order, settlement.block)),
      ]);
    },

    told: (kind, entry, client) => sessions.tell(certificateId(entry, kind.product), senderOf(entry.payer, client)),

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

    async find(kind, { wallet, token, client }) {
      const tokenSha256 = token === null ? null : parts.tokenSha256(token);
      const session = await sessions.find(kind.product, wallet, { tokenSha256, now: now() });
      return session === null ? null : { session, token, sender: senderOf(wallet, client) };
    },

    async serve(kind, found) {
      const at = { ...callerOf(found), now: now() };
      let over = ended(kind, found.session);
      const served = await sessions.serve(found.session.id, at, (session) => {
        if (!isOpen(session, at.now)) return null;
        if (!isElsewhere(session, at)) return nextChallenge(session, at.door);
        over = ELSEWHERE;
        return null;
      });
      return served === null ? over : offer(kind, { ...found, session: served.session }, served.challenge);
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
      const isHeld = door === "wallet" && session.tokenUsed;
      const over = isOpen(session, now()) ? null : OVER;
      if (over === null && shown !== "control" && isHeld) return "held";
      if (over === null && shown === "elsewhere") return null;
      const challenge = shown === "control" ? "control" : "bait";
      const input = { session: session.id, token: found.token };
      const common = { offer: offer(kind, found, challenge), purchase: purchaseAt(session, door), input, over };
      const deliver: Match["deliver"] = async (said) => {
        if (said === "over" && door === "token") await sessions.end(session.id, now());
        return null;
      };
      if (challenge === "control") {
        const order = { ...common, route: control, paymentId: `challenge:${session.id}` };
        if (session.control === null && isElsewhere(session, callerOf(found)))
          return { ...order, withhold: refuse, deliver };
        return { ...order, over: over ?? (isHeld ? ASIDE : null) };
      }
      return {
        ...common,
        route: bait,
        paymentId: null,
        withhold: (withheld) => withhold(parts, { ...told(kind, found), ...callerOf(found) }, withheld),
        deliver,
      };
    },

    async result(kind, found) {
      const { session } = found;
      if (session.verdict === null && isOpen(session, now()) && isPassed(session))
        await conclude(parts, told(kind, found));
      const verdict = await verdicts.of(told(kind, found));
      if (verdict !== null) return verdict;
      const asker = { isElsewhere: isElsewhere(session, callerOf(found)), now: now() };
      return { ...incomplete(told(kind, found), asker), ...verdicts.help(kind) };
    },
  };
}

/** The wallet's newest session of this test that is open beside this one; null if there is none. */
export async function otherOpen({ sessions, now }: BehaviorParts, { id, product, wallet }: Session) {
  const at = now();
  const other = await sessions.find(product, wallet, { tokenSha256: null, now: at });
  return other !== null && other.id !== id && isOpen(other, at) ? other : null;
}

/**
 * The answer to a control names the token that its payer used, and a settled payment's header can be rebuilt from the
 * chain. So a payment at one door is another request than the same one at the other.
 */
const purchaseAt = ({ id }: Session, door: Door): string => (door === "token" ? id : `${id}/wallet`);

const ended = (kind: BaitedKind, session: Session): string =>
  `This session has ended: it has a verdict or has timed out. Get the result from POST ${testPath(kind, session)}/result, or start a new session.`;

/**
 * An order that was signed and handed in with a token that strangers may have, not from where its agent is. Whichever order
 * it is, it ends the session: otherwise a client could find out at another address which one is safe to pay.
 */
export const refuse = (): RecordedAnswer => ({
  answer: jsonAnswer({}),
  record: () => Promise.reject(new SaleOver(SHARED)),
});

/** PASS, unless there already is a verdict: the first one stands. */
async function conclude({ sessions, verdicts, now }: BehaviorParts, told: Told<BaitedKind>) {
  const { kind, session } = told;
  const { id, sender } = session;
  await sessions.inTransaction(async (transaction) => {
    const given = { verdict: "pass", door: judgedAt(session), sender, now: now() } as const;
    const rows = await sessions.conclude(id, given, transaction);
    if (rows === 0) return;
    const basis = { grounds: rests(session), withheld: null };
    await write(transaction, verdicts.give(told, passed(kind, session, now()), basis));
  });
}

/** FAIL: the answer to a signed bait, recorded together with it. */
function withhold(
  { sessions, verdicts, now }: BehaviorParts,
  { door, sender, ...told }: Told<BaitedKind> & Caller,
  withheld: Withheld,
): RecordedAnswer {
  const { kind, session } = told;
  const certificate = failed(kind, session, { withheld, door, now: now() });
  const given = verdicts.give(told, certificate, { grounds: rests(session), withheld });
  return {
    answer: given.answer,
    async record(transaction) {
      const rows = await sessions.conclude(session.id, { verdict: "fail", door, sender, now: now() }, transaction);
      if (rows === 0) throw new SaleOver(isElsewhere(session, { door, sender }) ? SHARED : OVERS[door]);
      await write(transaction, given);
    },
  };
}

/** Stores what comes with a verdict. */
export async function write(transaction: Transaction, { writes }: Pick<KnownCompletion, "writes">): Promise<void> {
  for (const { text, values } of writes) await transaction.query(text, values);
}

/** The payments that this session's certificate rests on. */
const rests = ({ entry, control }: Session) => ({ payment: entry.payment, also: control?.nonce ?? null });
