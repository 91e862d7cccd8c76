import type { Transport } from "../../packages/seller-check/src/exam/exchange.ts";
import { choose, readQuotes } from "../../packages/seller-check/src/exam/terms.ts";
import { BudgetSpent, type LookupBudget } from "../platform/db/lookup-budget.ts";
import { Problem } from "../platform/http/errors.ts";
import { formatUsd } from "../platform/money.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Address } from "../platform/wallet.ts";
import {
  type ConsentFile,
  type ConsentLine,
  consentLine,
  consentUrl,
  isInTime,
  isUnder,
  readConsent,
  suggestedExpiry,
  widest,
} from "./consent.ts";
import {
  type ExamRequest,
  REFUSALS,
  type Refusal,
  type RequestSettings,
  requestKey,
  urlRefusal,
} from "./exam-request.ts";
import type { ProbeStore } from "./orders-store.ts";
import type { Consent, ExaminedRequest } from "./record.ts";
import type { Visitor } from "./visitor-web.ts";

/** A seller's response to an unpaid request. */
export type SellerQuote = { readonly refusal: Refusal } | { readonly payTo: Address; readonly amount: string };

/**
 * An origin's file, and the quote if a line of it covers the request. The quote is null if the seller was not
 * contacted. JSON.
 */
export interface ProbeResult extends ConsentFile {
  readonly quote: SellerQuote | null;
}

/** A seller's quote, and the line that permits the exam. */
export interface ExaminableQuote {
  readonly payTo: Address;
  readonly amount: bigint;
  readonly consent: Consent;
}

export interface LookParts {
  /** The network on which the seller is paid. */
  readonly network: Network;
  readonly probes: ProbeStore;
  readonly budget: LookupBudget;
  readonly visitor: Visitor;
  /** The service's wallets, in lowercase. */
  readonly ownWallets: readonly Address[];
  readonly settings: RequestSettings;
  readonly now: () => Date;
}

/** The result of looking at a seller. */
export interface Looked {
  /** The origin's file, or null if the URL itself is refused. */
  readonly file: ConsentFile | null;
  readonly prospect: ExaminableQuote | Refusal;
}

const PROBE_MS = 15_000;

/** The client, and the buyer's wallet, or null while unknown. */
export interface Asking {
  readonly client: string;
  readonly wallet: Address | null;
}

/**
 * Reads the origin's file and requests the seller's quote on behalf of a client, unless that was done recently.
 * @throws Problem if the seller may not be contacted now
 */
export async function lookAt(parts: LookParts, request: ExamRequest, { client, wallet }: Asking): Promise<Looked> {
  const wrong = urlRefusal(request.url, parts.settings);
  if (wrong !== null) return { file: null, prospect: wrong };
  const file = await ask(parts, request, { client, wallet });
  return { file, prospect: prospectOf(parts, request, { found: file, wallet }) };
}

/** If no line covers the order, the seller is contacted again, because the line may have been added since. */
async function ask(parts: LookParts, request: ExamRequest, { client, wallet }: Asking): Promise<ProbeResult> {
  const key = requestKey(request, parts.network);
  const known = await parts.probes.fresh(key);
  if (known !== null && known.quote !== null && covering(parts, request, { found: known, wallet }) !== null)
    return known;
  const { origin } = new URL(request.url);
  await parts.budget.spend(client).catch((error: unknown) => {
    if (!(error instanceof BudgetSpent)) throw error;
    const who =
      error.whose === "client"
        ? "You have reached the hourly limit on quotes from sellers"
        : "The hourly limit on quotes from sellers has been reached";
    throw tooMany(who, error.retryAfterSeconds);
  });
  const begun = await parts.probes.begin(origin, key);
  if (typeof begun !== "number") {
    const found = await probe(parts, request);
    await parts.probes.finish(begun.id, found);
    return found;
  }
  if (known !== null) return known;
  throw tooMany(`The limit on quotes from ${origin} has been reached`, begun);
}

const tooMany = (what: string, seconds: number): Problem =>
  new Problem("too_many_requests", {
    detail: `${what}. Nothing was charged.`,
    headers: { "retry-after": `${seconds}` },
  });

/** Reads the file and, if a line of it covers the request, sends the request once without payment. */
async function probe(parts: LookParts, request: ExamRequest): Promise<ProbeResult> {
  const { visitor, settings, now } = parts;
  const transport = visitor.visit(PROBE_MS, new AbortController().signal);
  const { origin } = new URL(request.url);
  const file = await fetchConsent(transport, { origin, baseUrl: settings.baseUrl, now: now() });
  const isCovered = file.lines.some(({ prefix }) => isUnder(prefix, request.url));
  return { ...file, quote: isCovered ? await quote(parts, transport, request) : null };
}

/** Returns the origin's current file. A missing file has no lines. */
export async function fetchConsent(
  transport: Transport,
  { origin, baseUrl, now }: { readonly origin: string; readonly baseUrl: string; readonly now: Date },
): Promise<ConsentFile> {
  const request = { method: "GET", url: consentUrl(origin), headers: {}, body: null };
  const answer = await transport.send(request).catch(() => null);
  return answer?.status === 200 ? readConsent(answer.body, new URL(baseUrl).host, now) : { lines: [], faults: [] };
}

/** Does not distinguish a host without a public address from one that does not respond. */
async function quote(
  { ownWallets, network }: LookParts,
  transport: Transport,
  { url, method, body, contentType }: ExaminedRequest,
): Promise<SellerQuote> {
  const refusal = (code: Refusal["code"], detail: string = REFUSALS[code]): SellerQuote => ({
    refusal: { code, detail },
  });
  const headers = body === null ? {} : { "content-type": contentType };
  const answer = await transport.send({ method, url, headers, body }).catch(() => null);
  if (answer?.status !== 402) return refusal("not_paid");
  const quotes = readQuotes(answer);
  if (quotes.every(({ problem }) => problem !== null)) return refusal("not_paid");
  // The price limit is checked for each order, because each may name its own.
  const payable = { network, asset: NETWORKS[network].usdc.address, ceiling: 10n ** 30n };
  const terms = choose(quotes, payable, url);
  if (typeof terms === "string") return refusal("not_payable", notPayable(network));
  const payTo = terms.payTo.toLowerCase() as Address;
  return ownWallets.includes(payTo) ? refusal("own_service") : { payTo, amount: `${terms.amount}` };
}

const notPayable = (network: Network): string =>
  `the 402 offers nothing that is paid in ${NETWORKS[network].money} under the scheme exact or auth-capture`;

interface Known {
  readonly found: ProbeResult;
  /** Null while unknown. */
  readonly wallet: Address | null;
}

/** Returns the line that lets the wallet, or any wallet if null, buy this exam now. */
const covering = (
  { now }: Pick<LookParts, "now">,
  request: ExamRequest,
  { found, wallet }: Known,
): ConsentLine | null =>
  widest(
    found.lines.filter((line) => (wallet === null || line.wallet === wallet) && isInTime(line, now())),
    request,
  );

/** Returns the seller's quote if it can be examined, or why it cannot. */
export function prospectOf(parts: LookParts, request: ExamRequest, known: Known): ExaminableQuote | Refusal {
  const line = covering(parts, request, known);
  if (line === null) return noLine(parts, request, known);
  const { quote: quoted } = known.found;
  if (quoted === null) return noLine(parts, request, known);
  if ("refusal" in quoted) return quoted.refusal;
  const [amount, most] = [BigInt(quoted.amount), BigInt(request.maxPrice)];
  if (amount > most)
    return {
      code: "too_dear",
      detail: `the seller asks for ${formatUsd(amount)} USDC, and the limit is ${formatUsd(most)} USDC`,
    };
  const url = consentUrl(new URL(request.url).origin);
  return { payTo: quoted.payTo, amount, consent: { url, text: line.text, prefix: line.prefix, expires: line.expires } };
}

/** Returns a line that would let the wallet buy exams of the whole origin for a month. */
export const suggestedLine = ({ settings, now }: Pick<LookParts, "settings" | "now">, wallet: Address | null): string =>
  consentLine(new URL(settings.baseUrl).host, {
    wallet: wallet ?? "<wallet>",
    prefix: "/",
    expires: suggestedExpiry(now()),
  });

function noLine(parts: LookParts, { url, other }: ExamRequest, { found, wallet }: Known): Refusal {
  const { origin, pathname } = new URL(url);
  const what = other === null ? pathname : `${pathname} and ${new URL(other).pathname}`;
  const who = wallet === null ? "any wallet" : wallet;
  const wrong = found.faults.map(({ line, problem }) => ` Line ${line}: ${problem}.`).join("");
  const detail = `${consentUrl(origin)} has no line that lets ${who} buy an exam of ${what} (read within the last ten minutes); expected one like "${suggestedLine(parts, wallet)}".${wrong}`;
  return { code: "bad_consent", detail };
}
