import { answered, type Completion, jsonAnswer } from "../platform/http/answer.ts";
import { Problem } from "../platform/http/errors.ts";
import type { Intake, NotYet, Sale } from "../platform/http/route.ts";
import type { Address } from "../platform/wallet.ts";
import type { ExamAccount } from "./exam-account.ts";
import { noRoom } from "./exam-account.ts";
import { orderedDocument } from "./exam-document.ts";
import { type ExamRequest, examPath, orderId, type Refusal, requestKey, urlRefusal, worded } from "./exam-request.ts";
import type { ExamStore } from "./exam-store.ts";
import type { ExamWork, OpenOrder, OriginState } from "./exam-work-store.ts";
import {
  type Asking,
  type ExaminableQuote,
  type Looked,
  type LookParts,
  lookAt,
  prospectOf,
  suggestedLine,
} from "./look.ts";
import { QUOTE_MINUTES } from "./products.ts";

export interface IntakeParts extends LookParts {
  readonly store: Pick<ExamStore, "adding">;
  readonly work: Pick<ExamWork, "originState" | "open">;
  /** Null if exams are not for sale. */
  readonly account: ExamAccount | null;
  /** The key from which IDs are derived. */
  readonly secret: Uint8Array;
  /** The limit for exams in 24 hours, in atomic units. */
  readonly daily: bigint;
}

/** The payment that accompanies an order. */
export type Paying = Pick<OpenOrder, "payer" | "nonce">;

export function createExamIntake(parts: IntakeParts) {
  /**
   * Looks at the seller unless that was done recently.
   * @throws Problem if it may not be contacted now
   */
  const look = (request: ExamRequest, asking: Asking): Promise<Looked> => lookAt(parts, request, asking);
  /** Returns why the order cannot be opened now, because of the origin or of our funds; null if it can. */
  const wait = async (request: ExamRequest, prospect: ExaminableQuote): Promise<NotYet | null> => {
    const judge = await judgeOf(parts, request, prospect);
    return judge(await parts.work.originState(originOf(request)));
  };
  /** Opens the order, or returns why it cannot be opened now. */
  const open = async (request: ExamRequest, prospect: ExaminableQuote, paying: Paying): Promise<NotYet | null> => {
    const judge = await judgeOf(parts, request, prospect);
    return parts.work.open({ origin: originOf(request), ...paying, amount: prospect.amount }, judge);
  };
  return {
    look,
    /** Returns the line that an operator may add for a wallet. */
    line: (wallet: Address | null) => suggestedLine(parts, wallet),
    wait,
    open,
    prepare: (request: ExamRequest, client: string) =>
      prepareOrder(parts, request, { client, wait: (prospect) => wait(request, prospect) }),
    admit: (request: ExamRequest, paying: Paying) =>
      admitOrder(parts, request, { wallet: paying.payer, open: (prospect) => open(request, prospect, paying) }),
    sell: (sale: Sale<ExamRequest>) => ordered(parts, sale),
  };
}

export type ExamIntake = ReturnType<typeof createExamIntake>;

type Open = (prospect: ExaminableQuote) => Promise<NotYet | null>;

/** Looks at the seller before a payment. @throws Problem if no wallet could buy this */
export async function prepareOrder(
  parts: LookParts,
  request: ExamRequest,
  { client, wait }: { readonly client: string; readonly wait: Open },
): Promise<NotYet | null> {
  const { prospect } = await lookAt(parts, request, { client, wallet: null });
  if ("code" in prospect) throw refusedProblem(prospect);
  return wait(prospect);
}

/** Accepts only a quote that was requested without a payment: wallets cost nothing, so they do not count as clients. */
export async function admitOrder(
  parts: LookParts,
  request: ExamRequest,
  { wallet, open }: { readonly wallet: Address; readonly open: Open },
): Promise<Intake<ExamRequest>> {
  const wrong = urlRefusal(request.url, parts.settings);
  if (wrong !== null) return refused(wrong);
  const found = await parts.probes.fresh(requestKey(request, parts.network));
  if (found === null)
    return {
      unavailable: `No quote was requested from the seller within the last ${QUOTE_MINUTES} minutes. Send the request without a payment first, then this payment again.`,
    };
  const prospect = prospectOf(parts, request, { found, wallet });
  if ("code" in prospect) return refused(prospect);
  const notYet = await open(prospect);
  if (notYet !== null) return { unavailable: notYet.detail };
  const { payTo, amount, consent } = prospect;
  return { input: { ...request, settled: { origin: originOf(request), payTo, amount: `${amount}`, consent } } };
}

const originOf = ({ url }: ExamRequest): string => new URL(url).origin;

const refused = (refusal: Refusal) => ({ refused: [{ path: "url", message: worded(refusal) }] });

export const refusedProblem = (refusal: Refusal): Problem =>
  new Problem("unacceptable", {
    detail: `The exam is refused: ${refusal.detail.replace(/\.$/, "")}. Nothing was charged.`,
    errors: [{ path: "url", message: worded(refusal) }],
  });

/** Returns a function that judges the database's facts in light of our current funds. */
async function judgeOf({ account, daily }: IntakeParts, request: ExamRequest, { amount }: ExaminableQuote) {
  const balance = (await account?.balance()) ?? 0n;
  const origin = originOf(request);
  const later = (detail: string, retryAfterSeconds: number): NotYet => ({ detail, retryAfterSeconds, isSpent: false });
  return ({ isOpen, restsFor, commitments }: OriginState): NotYet | null => {
    if (isOpen) return later(`${origin} has an order that is open: its exam is being paid for or is under way.`, 60);
    if (restsFor > 0) return later(`${origin} was examined a moment ago and cannot be examined again yet.`, restsFor);
    const full = noRoom({ ...commitments, balance, daily }, amount);
    return full === null ? null : later(full, 120);
  };
}

function ordered({ store, secret, settings: { baseUrl } }: IntakeParts, sale: Sale<ExamRequest>): Completion {
  const { input, payment, settlement, receivedAt } = sale;
  const { url, method, body, contentType, other, settled } = input;
  if (settled === null) throw new Error("an exam was sold without an intake");
  const { origin, payTo, amount, consent } = settled;
  const id = orderId("exam", payment, secret);
  const order = {
    ...{ id, origin, url, method, body, contentType, other, payTo, amount: BigInt(amount), consent },
    ...{ payment, settlement, orderedAt: receivedAt, againOf: null },
  };
  return answered(jsonAnswer(orderedDocument(order, baseUrl), { location: examPath(id) }), store.adding(order));
}
