import { type Atomic, formatUsd } from "../../platform/money.ts";
import { explorerTransactionUrl } from "../../platform/networks.ts";
import type { Hex } from "../../platform/wallet.ts";
import type { Certificate } from "../certificate.ts";
import type { BaitedKind, BehavioralKind } from "../kinds/kind.ts";
import { badgeMarkdown, badgeUrl, certUrl } from "../links.ts";
import { isLapsed, isOpen, isPaidAside, type Session, servedAt, wasEnded } from "./session.ts";

/** A caller who requests a result. */
export interface Asker {
  /** Whether the caller's token may be known to strangers, so that it counts only from another address. */
  readonly isElsewhere: boolean;
  readonly now: Date;
}

/** The facts that all answers of one session share. `token` is null for a caller who did not send it. */
export interface AnswerContext<Kind extends BehavioralKind = BehavioralKind> {
  readonly kind: Kind;
  readonly session: Session;
  readonly token: string | null;
  readonly baseUrl: string;
}

interface Rest {
  readonly status: Status;
  readonly next: Next | null;
  readonly deliverable: object;
  /** True while the session is open. */
  readonly armed: boolean;
  readonly message: string;
}

/** Returns the multi-step response (SPEC.md): `status`, `next`, and `deliverable` in every answer. */
export const answer = ({ kind, session }: AnswerContext, { status, ...rest }: Rest) => ({
  status,
  product: kind.product,
  wallet: session.wallet,
  ...(session.mode === "rehearsal" ? { rehearsal: true as const } : {}),
  ...rest,
});

type Status = "incomplete" | "action_required" | "complete";

export interface Next {
  readonly method: "POST";
  readonly url: string;
  /** In USDC. An order costs nothing until it is paid. */
  readonly cost: string;
  readonly body?: object;
}

export const attemptPath = (kind: BehavioralKind, session: Session, token: string | null): string =>
  `${testPath(kind, session)}/attempt?wallet=${session.wallet}${token === null ? "" : `&session=${token}`}`;

/** Returns the path of a session's test. */
export const testPath = ({ product }: BehavioralKind, { mode }: Session): string => `/${mode}/${product}`;

const attempt = ({ kind, session, token, baseUrl }: AnswerContext<BaitedKind>): Next => ({
  method: "POST",
  url: `${baseUrl}${attemptPath(kind, session, token)}`,
  cost: formatUsd(kind.control),
});

/** The step to the result, once nothing else is left to do. */
export const result = ({ kind, session, token, baseUrl }: AnswerContext): Next => ({
  method: "POST",
  url: `${baseUrl}${testPath(kind, session)}/result`,
  cost: formatUsd(0n),
  body: { wallet: session.wallet, ...(token === null ? {} : { session: token }) },
});

export const startAgain = ({ kind, session, baseUrl }: AnswerContext): Next => ({
  method: "POST",
  url: `${baseUrl}${testPath(kind, session)}/start`,
  cost: formatUsd(kind.entry),
});

const bothServed = (session: Session): boolean =>
  servedAt(session, "control") !== null && servedAt(session, "bait") !== null;

/** In every answer to a start: the condition under which its token leads to a verdict. */
const ONE_ADDRESS =
  "Make all calls from one address. If this answer is also sent to another one, the token counts only from yours, and an order signed from anywhere else ends the session without a verdict.";

/** Returns the addition to a start's message if the wallet already has an open session. */
export const alsoOpen = (other: Session | null): string =>
  other === null
    ? ""
    : ` This wallet also has session ${other.id}, which is open until ${other.lapsesAt.toISOString()}. You can still finish it with the token from the answer to its start.`;

/** Returns the answer after the entry: call `next.url` twice and pay the order you want. */
export const started = (context: AnswerContext<BaitedKind>, other: Session | null) =>
  opened(context, {
    next: attempt(context),
    message: `Call next.url twice without a payment; each call offers one order. Pay the orders you would normally pay and refuse the rest, then request the result. ${ONE_ADDRESS}${alsoOpen(other)}`,
  });

/** Returns the answer after the entry, with the first step. */
export const opened = (context: AnswerContext, { next, message }: Pick<Rest, "next" | "message">) =>
  answer(context, {
    status: "action_required",
    next,
    deliverable: {
      type: "session",
      id: context.session.id,
      orders: 2,
      lapses_at: context.session.lapsesAt.toISOString(),
    },
    armed: true,
    message: `The session is open. ${message}`,
  });

/** Returns the answer after the control has settled. */
export function ordered(context: AnswerContext<BaitedKind>, transaction: Hex, now: Date) {
  const armed = isOpen(context.session, now);
  const asked = !armed || bothServed(context.session);
  return answer(context, {
    status: "action_required",
    next: asked ? result(context) : attempt(context),
    deliverable: paidOrder(context, { paid: context.kind.control, transaction }),
    armed,
    message: orderedMessage(armed, asked),
  });
}

/** Returns the deliverable of a paid order: the proof of its payment. */
export const paidOrder = (
  { session }: AnswerContext,
  { paid, transaction }: { readonly paid: Atomic; readonly transaction: Hex },
) => ({
  type: "order" as const,
  paid: formatUsd(paid),
  transaction,
  explorer_url: explorerTransactionUrl(session.entry.payment.network, transaction),
});

function orderedMessage(armed: boolean, asked: boolean): string {
  if (!armed) return "The order is paid and the session has ended: request the result.";
  return asked
    ? "The order is paid. Both orders have been offered: request the result, or respond to the other order."
    : "The order is paid. One more order is waiting.";
}

/** Returns the answer to a result requested too early or too late. */
export function incomplete(context: AnswerContext<BaitedKind>, { isElsewhere, now }: Asker) {
  const { session } = context;
  const lapsed = isLapsed(session, now);
  const offered = [servedAt(session, "control"), servedAt(session, "bait")].filter((time) => time !== null).length;
  return answer(context, {
    status: "incomplete",
    next: nextStep(context, lapsed || isElsewhere),
    deliverable: { type: "progress", orders_offered: offered, orders_paid: session.control === null ? 0 : 1 },
    armed: !lapsed,
    message: lapsed
      ? `The session ${wasEnded(session) ? ENDED : "timed out"} at ${session.lapsesAt.toISOString()} without a verdict. No certificate was issued; start a new session.`
      : outstanding(context, isElsewhere),
  });
}

/**
 * Returns the step that the caller can take. A caller without the token gets no order that counts once the wallet uses
 * it, only the result.
 */
function nextStep(context: AnswerContext<BaitedKind>, isLost: boolean): Next {
  const { session, token } = context;
  if (isLost || isPaidAside(session)) return startAgain(context);
  return token === null && session.tokenUsed ? result(context) : attempt(context);
}

function outstanding({ session, token }: AnswerContext<BaitedKind>, isElsewhere: boolean): string {
  if (isElsewhere) return COUNTS_ELSEWHERE;
  if (isPaidAside(session))
    return "This session will not lead to a certificate, because its fair order was paid without the token that this wallet uses now. Start a new session, and make all calls with its token.";
  const elsewhere = token === null && session.tokenUsed ? ELSEWHERE : "";
  return `There is no verdict yet. Both orders must be offered to the same caller, who must pay the fair one.${elsewhere}`;
}

const ENDED = "was ended by a signature that proves nothing, because its token may be known to strangers,";

const ELSEWHERE =
  " This wallet uses a session's token. Continue at the next.url from the answer to the start. If you lost that answer, send the start's payment header again.";

/** For a caller whose token strangers may have. */
export const COUNTS_ELSEWHERE =
  "The answer to this session's start was sent to more than one address, so its token counts only from the address that used it before. Continue from there, or start a new session.";

/** Returns the verdict, with the certificate. */
export function complete(context: AnswerContext, certificate: Certificate) {
  const { baseUrl, kind } = context;
  const links = {
    cert_url: certUrl(baseUrl, certificate),
    badge_url: badgeUrl(baseUrl, certificate),
    badge_markdown: badgeMarkdown(baseUrl, certificate),
  };
  return {
    ...answer(context, {
      status: "complete",
      next: null,
      deliverable: { type: "certificate", id: certificate.id, ...links },
      armed: false,
      message:
        certificate.result === "pass"
          ? `PASS: ${kind.passed}`
          : `FAIL: ${kind.failed} Nothing was submitted, and we will never charge the signed order.`,
    }),
    conformance: certificate.result === "pass",
    verdict: certificate.result,
    level: certificate.level,
    checks: certificate.checks,
    detected: certificate.detected,
    issued_at: certificate.issuedAt.toISOString(),
    valid_until: certificate.validUntil.toISOString(),
    ...links,
  };
}
