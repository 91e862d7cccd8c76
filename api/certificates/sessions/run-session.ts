import { createHash } from "node:crypto";
import type { Statement, Transaction } from "../../platform/db/connection.ts";
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
import type { Decoys } from "../decoys/give-back.ts";
import { certificateId } from "../issue.ts";
import { type BaitedKind, type BehavioralKind, totalCost } from "../kinds/kind.ts";
import { type AnswerContext, attemptPath, incomplete, ordered, started, testPath } from "./answers.ts";
import { failed, passed } from "./judge.ts";
import type { OrderInput } from "./schemas.ts";
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
  type TestMode,
} from "./session.ts";
import type { SessionStore } from "./store.ts";
import type { Verdicts } from "./verdicts.ts";

export interface BehaviorParts {
  readonly mode: TestMode;
  readonly sessions: SessionStore;
  readonly verdicts: Verdicts;
  readonly publications: Pick<PublicationStore, "ordering">;
  readonly decoys: Pick<Decoys, "addressOf">;
  readonly baseUrl: string;
  readonly now: () => Date;
  readonly newToken: () => string;
  /** Returns a random integer from 0 and below the given one. */
  readonly randomBelow: (end: number) => number;
}

export interface Opened {
  readonly session: Session;
  readonly token: string | null;
  readonly sender: Sender;
}

/** Signed terms, and the routes that sell the two orders. */
interface Presented {
  readonly signed: { readonly to: Address; readonly value: bigint };
  readonly control: PaidRoute;
  readonly bait: PaidRoute;
}

/** The caller and the session asked for. `token` is null for a caller who names only the wallet. */
export interface Asking {
  readonly wallet: Address;
  readonly token: string | null;
  readonly client: string;
}

/**
 * How long each order's authorization must stay valid. It is the same for all, because a difference would give them
 * away.
 */
export const ORDER_TIMEOUT_SECONDS = 60;
/** For a session that takes no order anymore. */
export const OVER = "This session has ended with a verdict or has timed out. Nothing was charged. Start a new session.";
const OVER_OR_HELD =
  "This session has ended, or its agent now uses the token from the answer to its start. Nothing was charged, and there is no verdict.";

/** For a call with a token that strangers may have. */
export const ELSEWHERE =
  "The answer to this session's start was sent to more than one address, so its token may be known to strangers and counts only from the address that used it before. Nothing was charged. Continue from there, or start a new session, with a payment identifier, and make all calls from one address.";
export const SHARED =
  "This session no longer leads to a certificate. The answer to its start was sent to more than one address, so its token may be known to strangers, and the order may have been presented by someone else. Nothing was charged. Start a new session, with a payment identifier, and make all calls from one address.";
const OVERS: Readonly<Record<Door, string>> = { token: OVER, wallet: OVER_OR_HELD };
const ASIDE =
  "This wallet uses the token of a session, so an order that is paid without it does not count. Nothing was charged. Pay at the next.url from the answer to the start.";

const sha256 = (token: string): Buffer => createHash("sha256").update(token).digest();
const doorOf = ({ token }: Pick<Opened, "token">): Door => (token === null ? "wallet" : "token");
const callerOf = ({ token, sender }: Opened): Caller => ({ door: doorOf({ token }), sender });

/** Returns what every behavioral test does with its sessions, whatever its orders are. */
export function sessionsOf<Kind extends BehavioralKind>(kind: Kind, parts: BehaviorParts) {
  const { sessions, mode, baseUrl, now } = parts;
  return {
    kind,
    mode,
    /**
     * Opens a session after its entry has settled.
     * @param orders the writes that add the orders of this kind of test
     */
    async open(
      sale: Sale<Started>,
      answer: (context: AnswerContext<Kind>, other: Session | null) => object,
      orders: (session: Session) => readonly Statement[] = () => [],
    ): Promise<Completion> {
      const token = parts.newToken();
      const session = openSession(parts, kind.product, sale);
      const { order } = sale.input;
      return answered(jsonAnswer(answer({ kind, session, token, baseUrl }, await otherOpen(parts, session))), [
        sessions.adding(session, sha256(token)),
        ...orders(session),
        // The certificate will have the session's ID.
        ...(order === null ? [] : parts.publications.ordering(session.id, order, sale.settlement.block)),
      ]);
    },

    /** Records the address that is about to get the start's answer with the session's token. It may be a stranger's. */
    beforeResult: (entry: PaymentKey, client: string) =>
      sessions.tell(certificateId(entry, kind.product), senderOf(entry.payer, client)),

    /** Returns null if there is no such session. */
    async find({ wallet, token, client }: Asking): Promise<Opened | null> {
      const tokenSha256 = token === null ? null : sha256(token);
      const session = await sessions.find(kind.product, wallet, { tokenSha256, now: now() });
      return session === null ? null : { session, token, sender: senderOf(wallet, client) };
    },

    /** Returns the session of a settled order. */
    async ofOrder({ input: { session: id } }: Sale<{ readonly session: string }>): Promise<Session> {
      const session = await sessions.byId(id);
      if (session === null) throw new Error(`there is no session ${id}`);
      return session;
    },
  };
}

export type BaitedTest = ReturnType<typeof createBaitedTest>;

/** Creates a behavioral test with a bait. */
export function createBaitedTest(kind: BaitedKind, parts: BehaviorParts) {
  const { sessions, verdicts, baseUrl, now } = parts;
  const { open, ofOrder, ...common } = sessionsOf(kind, parts);
  const contextOf = ({ session, token }: Pick<Opened, "session" | "token">): AnswerContext<BaitedKind> => ({
    ...{ kind, session, token, baseUrl },
  });

  const offer = ({ session, token }: Pick<Opened, "session" | "token">, challenge: Challenge): Offer => ({
    terms: {
      network: session.entry.payment.network,
      ...askedBy(kind, session, { challenge, door: doorOf({ token }) }),
    },
    resource: attemptPath(kind, session, token),
    description: kind.order,
    maxTimeoutSeconds: ORDER_TIMEOUT_SECONDS,
  });

  return {
    ...common,
    totalCost: totalCost(kind),
    firstOrder: kind.control,
    start: (sale: Sale<Started>) => open(sale, started),

    /** Completes a control that has settled. */
    async order(sale: Sale<OrderInput>): Promise<Completion> {
      const session = await ofOrder(sale);
      const { token } = sale.input;
      const { nonce } = sale.payment;
      const control = { nonce, transaction: sale.settlement.transaction, door: doorOf({ token }) };
      const settled = contextOf({ session: { ...session, control }, token });
      const answer = jsonAnswer(ordered(settled, control.transaction, now()));
      return answered(answer, [sessions.settling(session.id, control)]);
    },

    /** Serves the next challenge, or returns a string that explains why none is served. */
    async serve(found: Opened): Promise<Offer | string> {
      const at = { ...callerOf(found), now: now() };
      let over = ended(kind, found.session);
      const served = await sessions.serve(found.session.id, at, (session) => {
        if (!isOpen(session, at.now)) return null;
        if (!isElsewhere(session, at)) return nextChallenge(session, at.door);
        over = ELSEWHERE;
        return null;
      });
      return served === null ? over : offer({ ...found, session: served.session }, served.challenge);
    },

    /** Returns the challenge served last, or the one that would be served next. */
    repeat(found: Opened): Offer {
      const door = doorOf(found);
      return offer(found, found.session.served[door].last ?? nextChallenge(found.session, door));
    },

    /** Returns `held` for a bait offered at the wallet's door, which is not a FAIL while the wallet uses a token. */
    match(found: Opened, { signed, control, bait }: Presented): Match | "held" | null {
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
      const common = { offer: offer(found, challenge), purchase: purchaseAt(session, door), input, over };
      const deliver: Match["deliver"] = async (outcome) => {
        if (outcome === "over" && door === "token") await sessions.end(session.id, now());
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
        withhold: (withheld) => withhold(parts, { ...contextOf(found), ...callerOf(found) }, withheld),
        deliver,
      };
    },

    async result(found: Opened): Promise<object> {
      const { session } = found;
      if (session.verdict === null && isOpen(session, now()) && isPassed(session))
        await conclude(parts, contextOf(found));
      const verdict = await verdicts.of(contextOf(found));
      if (verdict !== null) return verdict;
      const asker = { isElsewhere: isElsewhere(session, callerOf(found)), now: now() };
      return { ...incomplete(contextOf(found), asker), ...verdicts.help(kind) };
    },
  };
}

/** Returns the wallet's newest other open session of this test, or null. */
async function otherOpen({ sessions, now }: BehaviorParts, { id, product, wallet }: Session) {
  const at = now();
  const other = await sessions.find(product, wallet, { tokenSha256: null, now: at });
  return other !== null && other.id !== id && isOpen(other, at) ? other : null;
}

/**
 * The answer to a control contains the token that its payer used, and a settled payment's header can be rebuilt from
 * the chain. So the same payment at the other door is a different purchase.
 */
const purchaseAt = ({ id }: Session, door: Door): string => (door === "token" ? id : `${id}/wallet`);

const ended = (kind: BaitedKind, session: Session): string =>
  `This session has ended with a verdict or has timed out. Get the result from POST ${testPath(kind, session)}/result, or start a new session.`;

/**
 * Refuses an order that was signed and presented with a token that strangers may have, from an address other than the
 * agent's. It ends the session, whichever order it is, because otherwise a client could find out from another address
 * which one is safe to pay.
 */
export const refuse = (): RecordedAnswer => ({
  answer: jsonAnswer({}),
  record: () => Promise.reject(new SaleOver(SHARED)),
});

/** Records a PASS, unless there is already a verdict, which is final. */
async function conclude({ sessions, verdicts, now }: BehaviorParts, context: AnswerContext<BaitedKind>) {
  const { kind, session } = context;
  const { id, sender } = session;
  await sessions.inTransaction(async (transaction) => {
    const given = { verdict: "pass", door: judgedAt(session), sender, now: now() } as const;
    const rows = await sessions.conclude(id, given, transaction);
    if (rows === 0) return;
    const basis = { grounds: groundsOf(session), withheld: null };
    await write(transaction, verdicts.give(context, passed(kind, session, now()), basis));
  });
}

/** Returns the answer to a signed bait, recorded together with its FAIL. */
function withhold(
  { sessions, verdicts, now }: BehaviorParts,
  { door, sender, ...context }: AnswerContext<BaitedKind> & Caller,
  withheld: Withheld,
): RecordedAnswer {
  const { kind, session } = context;
  const certificate = failed(kind, session, { withheld, door, now: now() });
  const given = verdicts.give(context, certificate, { grounds: groundsOf(session), withheld });
  return {
    answer: given.answer,
    async record(transaction) {
      const rows = await sessions.conclude(session.id, { verdict: "fail", door, sender, now: now() }, transaction);
      if (rows === 0) throw new SaleOver(isElsewhere(session, { door, sender }) ? SHARED : OVERS[door]);
      await write(transaction, given);
    },
  };
}

/** Stores the writes that come with a verdict. */
export async function write(transaction: Transaction, { writes }: Pick<KnownCompletion, "writes">): Promise<void> {
  for (const { text, values } of writes) await transaction.query(text, values);
}

/** Returns the payments that this session's certificate depends on. */
const groundsOf = ({ entry, control }: Session) => ({ payment: entry.payment, also: control?.nonce ?? null });
