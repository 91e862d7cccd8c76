import type { Transport } from "../../packages/seller-check/src/exam/exchange.ts";
import { choose, readQuotes } from "../../packages/seller-check/src/exam/terms.ts";
import { answered, type Completion, jsonAnswer } from "../kernel/completion.ts";
import { Problem } from "../kernel/errors.ts";
import { formatUsd } from "../kernel/money.ts";
import type { Intake, NotYet, Sale } from "../kernel/route.ts";
import type { Address, Hex } from "../kernel/wallet.ts";
import { consentText, consentToken, consentUrl, expiryFault, hasToken } from "./consent.ts";
import { orderedDocument } from "./exam-document.ts";
import {
  type ExamRequest,
  examId,
  examPath,
  REFUSALS,
  type Refusal,
  type RequestSettings,
  requestKey,
  urlRefusal,
  worded,
} from "./exam-request.ts";
import type { ExamStore } from "./exam-store.ts";
import type { ExamAccount, ExamWork, Found, ProbeStore, Prospect, Visitor } from "./ports.ts";
import { EXAM_ASSET, EXAM_NETWORK, QUOTE_MINUTES } from "./products.ts";
import type { ExaminedRequest } from "./record.ts";
import { noRoom } from "./room.ts";
import { isSignedBy } from "./signed-consent.ts";

export interface IntakeParts {
  readonly store: Pick<ExamStore, "adding">;
  readonly work: Pick<ExamWork, "standing" | "commitments">;
  readonly probes: ProbeStore;
  readonly budget: { spend(client: string): Promise<void> };
  /** How many seconds until there is more, if this is the budget's refusal; null for any other error. */
  readonly spentFor: (error: unknown) => { readonly isClient: boolean; readonly seconds: number } | null;
  readonly visitor: Visitor;
  /** Null where exams are not for sale. */
  readonly account: ExamAccount | null;
  readonly verifyContractSignature: (wallet: Address, digest: Hex, signature: Hex) => Promise<boolean>;
  /** What ids are derived with. */
  readonly secret: Uint8Array;
  /** Of the service, in lower case. */
  readonly ownWallets: readonly Address[];
  readonly settings: RequestSettings;
  /** What exams may spend in 24 hours, in atomic units. */
  readonly daily: bigint;
  readonly now: () => Date;
}

export interface ExamIntake {
  /** Asks the seller, on behalf of a client, unless it was asked a while ago. @throws Problem if it may not be asked now */
  readonly look: (request: ExamRequest, client: string) => Promise<Prospect | Refusal>;
  /** What stands in the way at the moment: of the origin, or of our means. */
  readonly wait: (request: ExamRequest, prospect: Prospect) => Promise<NotYet | null>;
  readonly prepare: (request: ExamRequest, client: string) => Promise<NotYet | null>;
  /** Takes nothing but a quote that was asked for without a payment: wallets cost nothing, so they count for no client. */
  readonly admit: (request: ExamRequest) => Promise<Intake<ExamRequest>>;
  readonly sell: (sale: Sale<ExamRequest>) => Completion;
}

const PROBE_MS = 15_000;

export function createExamIntake(parts: IntakeParts): ExamIntake {
  const wait: ExamIntake["wait"] = (request, prospect) => standing(parts, request, prospect);
  const look: ExamIntake["look"] = async (request, client) => {
    const wrong = urlRefusal(request.url, parts.settings);
    return wrong ?? prospectOf(parts, request, await ask(parts, request, client));
  };
  return {
    look,
    wait,
    async prepare(request, client) {
      const prospect = await look(request, client);
      if ("code" in prospect) throw refusedProblem(prospect);
      return wait(request, prospect);
    },
    async admit(request) {
      const wrong = urlRefusal(request.url, parts.settings);
      if (wrong !== null) return { refused: [{ path: "url", message: worded(wrong) }] };
      const found = await parts.probes.fresh(requestKey(request));
      if (found === null)
        return {
          unavailable: `The seller was not asked for its quote within the last ${QUOTE_MINUTES} minutes. Send the request without a payment first, then this payment again.`,
        };
      const prospect = await prospectOf(parts, request, found);
      if ("code" in prospect) return { refused: [{ path: pathOf(prospect), message: worded(prospect) }] };
      const notYet = await wait(request, prospect);
      if (notYet !== null) return { unavailable: notYet.detail };
      const { payTo, amount, mode, consent } = prospect;
      return { input: { ...request, settled: { payTo, amount: `${amount}`, mode, consent } } };
    },
    sell: (sale) => ordered(parts, sale),
  };
}

const pathOf = ({ code }: Refusal): string => (code === "bad_consent" ? "consent" : "url");

export const refusedProblem = (refusal: Refusal): Problem =>
  new Problem("unacceptable", {
    detail: `The exam is refused: ${refusal.detail}. Nothing was charged.`,
    errors: [{ path: pathOf(refusal), message: worded(refusal) }],
  });

/** What the seller answers, or answered a while ago. Without a consent it is asked again: the file may be there by now. */
async function ask(parts: IntakeParts, request: ExamRequest, client: string): Promise<Found> {
  const known = await parts.probes.fresh(requestKey(request));
  if (known !== null && "hasFile" in known && known.hasFile) return known;
  const origin = new URL(request.url).origin;
  await parts.budget.spend(client).catch((error: unknown) => {
    const spent = parts.spentFor(error);
    if (spent === null) throw error;
    const who = spent.isClient
      ? "One client may have a limited number of sellers asked"
      : "We ask a limited number of sellers";
    throw tooMany(who, spent.seconds);
  });
  const begun = await parts.probes.begin(origin, requestKey(request));
  if (typeof begun !== "number") {
    const found = await probe(parts, request);
    await parts.probes.finish(begun.id, found);
    return found;
  }
  if (known !== null) return known;
  throw tooMany(`We ask ${origin} for a limited number of quotes`, begun);
}

const tooMany = (what: string, seconds: number): Problem =>
  new Problem("too_many_requests", {
    detail: `${what} in this time. Nothing was charged.`,
    headers: { "retry-after": `${seconds}` },
  });

/** One unpaid request, and one for the file. What a host without a public address answers is not told from silence. */
async function probe(
  { visitor, ownWallets, settings: { baseUrl } }: IntakeParts,
  request: ExamRequest,
): Promise<Found> {
  const transport = visitor.visit(PROBE_MS, new AbortController().signal);
  const quoted = await quote(transport, request);
  if (quoted.code !== undefined) return { refusal: quoted };
  if (ownWallets.includes(quoted.payTo)) return { refusal: { code: "own_service", detail: REFUSALS.own_service } };
  const origin = new URL(request.url).origin;
  const hasFile = await readsToken(transport, { host: new URL(baseUrl).host, origin, payTo: quoted.payTo });
  return { payTo: quoted.payTo, amount: `${quoted.amount}`, hasFile };
}

type Quoted =
  | (Refusal & { readonly payTo?: never })
  | { readonly code?: never; readonly payTo: Address; readonly amount: bigint };

async function quote(transport: Transport, { url, method, body, contentType }: ExaminedRequest): Promise<Quoted> {
  const headers = body === null ? {} : { "content-type": contentType };
  const answer = await transport.send({ method, url, headers, body }).catch(() => null);
  if (answer?.status !== 402) return { code: "not_paid", detail: REFUSALS.not_paid };
  const quotes = readQuotes(answer);
  if (quotes.every(({ problem }) => problem !== null)) return { code: "not_paid", detail: REFUSALS.not_paid };
  // What it costs at most is looked at for each order, since each may name its own.
  const terms = choose(quotes, { network: EXAM_NETWORK, asset: EXAM_ASSET, ceiling: 10n ** 30n }, url);
  if (typeof terms === "string") return { code: "not_payable", detail: REFUSALS.not_payable };
  return { payTo: terms.payTo.toLowerCase() as Address, amount: terms.amount };
}

/** Whether the origin's file gives consent at the moment. */
export async function readsToken(transport: Transport, to: Parameters<typeof consentToken>[0]): Promise<boolean> {
  const request = { method: "GET", url: consentUrl(to.origin), headers: {}, body: null };
  const answer = await transport.send(request).catch(() => null);
  return answer?.status === 200 && hasToken(answer.body, to);
}

async function prospectOf(parts: IntakeParts, request: ExamRequest, found: Found): Promise<Prospect | Refusal> {
  if ("refusal" in found) return found.refusal;
  const { payTo } = found;
  const amount = BigInt(found.amount);
  const most = BigInt(request.maxPrice);
  if (amount > most)
    return { code: "too_dear", detail: `the seller asks for ${formatUsd(amount)}, and the most is ${formatUsd(most)}` };
  const origin = new URL(request.url).origin;
  const to = { host: new URL(parts.settings.baseUrl).host, origin, payTo };
  if (found.hasFile) {
    const consent = { kind: "file", url: consentUrl(origin), text: consentToken(to) } as const;
    return { payTo, amount, mode: "paid", consent };
  }
  if (request.consent === null) return { payTo, amount, mode: "passive", consent: null };
  const { signature, expires } = request.consent;
  const text = consentText(to, expires);
  const fault = expiryFault(expires, parts.now()) ?? (await unsigned(parts, payTo, { text, signature }));
  if (fault !== null) return { code: "bad_consent", detail: fault };
  return { payTo, amount, mode: "paid", consent: { kind: "signature", text, signature, expires } };
}

async function unsigned(
  { verifyContractSignature }: IntakeParts,
  payTo: Address,
  { text, signature }: { readonly text: string; readonly signature: Hex },
): Promise<string | null> {
  const isSigned = await isSignedBy({ payTo, text, signature }, verifyContractSignature);
  if (isSigned === null) return `the contract ${payTo} does not say the same of the signature each time; try again`;
  return isSigned ? null : `the signature is not that of ${payTo} over ${JSON.stringify(text)}`;
}

async function standing(parts: IntakeParts, request: ExamRequest, { amount, mode }: Prospect): Promise<NotYet | null> {
  const { account, work, daily } = parts;
  const { origin } = new URL(request.url);
  const { isOpen, restsFor } = await work.standing(origin);
  const later = (detail: string, retryAfterSeconds: number): NotYet => ({ detail, retryAfterSeconds, isSpent: false });
  if (isOpen) return later(`${origin} is under exam at the moment.`, 60);
  if (restsFor > 0) return later(`${origin} was examined a moment ago, and is left alone for a while.`, restsFor);
  const [commitments, balance] = await Promise.all([work.commitments(), account?.balance() ?? 0n]);
  const full = noRoom({ ...commitments, balance, daily }, mode === "paid" ? amount : 0n);
  return full === null ? null : later(full, 120);
}

function ordered({ store, secret, settings: { baseUrl } }: IntakeParts, sale: Sale<ExamRequest>): Completion {
  const { input, payment, settlement, receivedAt } = sale;
  const { settled } = input;
  if (settled === null) throw new Error("an exam was sold without an intake");
  const id = examId(payment, secret);
  const { mode, consent, payTo } = settled;
  const { origin } = new URL(input.url);
  const { url, method, body, contentType } = input;
  // Orders that were journaled before it could be named have none.
  const other = input.other ?? null;
  const amount = BigInt(settled.amount);
  const asked = {
    id,
    origin,
    url,
    method,
    body,
    contentType,
    other,
    payTo,
    amount,
    mode,
    consent,
    payment,
    settlement,
  };
  const order = { ...asked, orderedAt: receivedAt, againOf: null };
  return answered(jsonAnswer(orderedDocument(order, baseUrl), { location: examPath(id) }), store.adding(order));
}
