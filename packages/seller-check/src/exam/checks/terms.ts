import { type Answer, type Exchange, isSuccess, statusOf } from "../exchange.ts";
import type { FindingCode } from "../remedies.ts";
import { choose, type Payable, type Quote, readQuotes, record, resourceUrl, type Terms } from "../terms.ts";
import type { Visit } from "../visit.ts";
import { type CheckResult, type Finding, judged, shownBy } from "../vocabulary.ts";

/** Servers and proxies refuse more than 8 KiB of headers by default. */
const MOST_HEADER_BYTES = 8_192;

/** The quoted terms. */
export interface Quoted {
  /** The terms that the rest of the exam pays, or the reason why it can pay none. */
  readonly terms: Terms | string;
  readonly first: Exchange;
  /** Compares with a later quote, if there was one. */
  readonly judge: (later: Exchange | null) => CheckResult;
}

/** Requests the terms without paying: as a buyer would, by HEAD, by another method, and again as a buyer. */
export async function askTerms(visit: Visit, payable: Payable): Promise<Quoted> {
  const first = await visit.ask();
  const head = await visit.ask({}, { method: "HEAD", body: null });
  const other = await visit.ask({}, otherMethod(visit.resource.method));
  const everywhere = await overEachFamily(visit);
  const again = await visit.ask();
  const { url } = visit.resource;
  const quotes = first.answer === null ? [] : readQuotes(first.answer);
  const terms =
    first.answer?.status === 402 ? choose(quotes, payable, url) : `the answer is ${statusOf(first)}, not 402`;
  const findings = [
    shownBy(first)(
      "terms.answers_402",
      `An unpaid request is answered with 402 (got ${statusOf(first)})`,
      first.answer?.status === 402,
    ),
    ...quotes.map((quote) => formOf(quote, first)),
    ...quotes.filter(({ problem }) => problem === null).flatMap((quote) => trueOf(quote, url, first)),
    ...agreement(quotes, first),
    sameTerms("terms.same_again", "A second request is quoted the same", [first, again]),
    headOf(first, head),
    otherOf(other),
    ...everywhere,
    sizeOf(first),
  ];
  return { terms, first, judge: (later) => judged("terms", [...findings, ...laterTerms(first, later)]) };
}

/** A later response other than 402 is judged by the check of caching. */
const laterTerms = (first: Exchange, later: Exchange | null): readonly Finding[] =>
  later?.answer?.status === 402
    ? [sameTerms("terms.same_later", "After a purchase the next buyer is quoted the same", [first, later])]
    : [];

/**
 * HEAD is GET without a body (RFC 9110, section 9.3.2). Sellers that do not offer it return 405, 501, or 404, and some
 * 400, 401, or 403: any refusal gives nothing away. A quote must be the same as for GET.
 */
function headOf(first: Exchange, head: Exchange): Finding {
  const isQuote = head.answer?.status === 402 && head.answer.headers["payment-required"] !== undefined;
  const holds = !isSuccess(head) && (!isQuote || isSame(first.answer, head.answer, 2));
  return shownBy(head)("terms.head", `HEAD is refused or quoted the same (got ${statusOf(head)})`, holds);
}

const otherOf = (other: Exchange): Finding =>
  shownBy(other)(
    "terms.other_method",
    `${other.request.method} is not served for free (got ${statusOf(other)})`,
    !isSuccess(other),
  );

function formOf({ version, problem }: Quote, first: Exchange): Finding {
  const statement = `The quote in x402 version ${version} is well formed${problem === null ? "" : `: ${problem}`}`;
  return shownBy(first)("terms.well_formed", statement, problem === null);
}

/**
 * A host may be another machine over IPv6. If one does not respond, it sells nothing, and buyers fall back to the
 * other.
 */
async function overEachFamily(visit: Visit): Promise<readonly Finding[]> {
  const families = (await visit.parts.transport.families?.(visit.resource.url)) ?? [];
  if (families.length < 2) return [];
  const [four, six] = [await visit.ask({}, { family: 4 }), await visit.ask({}, { family: 6 })];
  const silent = [four, six].find(({ answer }) => answer === null);
  if (silent === undefined) return [sameTerms("terms.same_over_ip", "IPv4 and IPv6 are quoted the same", [four, six])];
  return [shownBy(four, six)("terms.same_over_ip", `IPv4 and IPv6 are not compared: ${statusOf(silent)}`, true)];
}

const otherMethod = (method: string) =>
  method === "GET" ? ({ method: "POST", body: "{}" } as const) : ({ method: "GET", body: null } as const);

/** `resource` is this URL; a missing query or fragment is no contradiction. */
function trueOf({ version, accepts, resource }: Quote, url: string, first: Exchange): readonly Finding[] {
  const named = version === 1 ? accepts.map((entry) => entry.resource) : [resourceUrl(resource)];
  const isTrue = named.every((given) => typeof given === "string" && isSameResource(given, url));
  const statement = `The resource of version ${version} is this URL (named ${named.join(", ")})`;
  return [shownBy(first)("terms.names_this_url", statement, isTrue)];
}

function isSameResource(named: string, url: string): boolean {
  if (!URL.canParse(named)) return false;
  const [one, other] = [new URL(named), new URL(url)];
  return one.origin === other.origin && one.pathname === other.pathname && ["", other.search].includes(one.search);
}

/** If a 402 quotes in both versions, a buyer of either pays the same. */
function agreement(quotes: readonly Quote[], first: Exchange): readonly Finding[] {
  const [one, other] = quotes;
  if (one === undefined || other === undefined) return [];
  const prices = ({ version, accepts }: Quote) =>
    accepts.map((entry) => `${entry.payTo} ${version === 1 ? entry.maxAmountRequired : entry.amount}`.toLowerCase());
  const known = new Set(prices(one));
  const isAgreed = prices(other).every((price) => known.has(price));
  return [shownBy(first)("terms.versions_agree", "Both versions quote the same", isAgreed)];
}

function sameTerms(code: FindingCode, statement: string, [one, other]: readonly [Exchange, Exchange]): Finding {
  return shownBy(one, other)(code, statement, isSame(one.answer, other.answer, 1));
}

/**
 * Signed offers, deadlines, and error texts vary; amounts, recipients, and resources do not. A response to HEAD has no
 * body to compare.
 */
function isSame(one: Answer | null, other: Answer | null, from: 1 | 2): boolean {
  if (one === null || other === null) return false;
  const terms = (answer: Answer) =>
    readQuotes(answer)
      .filter(({ version }) => version >= from)
      .map(({ accepts, resource }) => [resourceUrl(resource), accepts.map(toBePaid)]);
  return JSON.stringify(terms(one)) === JSON.stringify(terms(other));
}

function toBePaid({ scheme, network, asset, payTo, amount, maxAmountRequired, extra }: Quote["accepts"][number]) {
  const {
    name,
    version,
    assetTransferMethod,
    authCaptureEscrow,
    captureAuthorizer,
    feeRecipient,
    minFeeBps,
    maxFeeBps,
  } = record(extra);
  const held = [authCaptureEscrow, captureAuthorizer, feeRecipient, minFeeBps, maxFeeBps];
  return [scheme, network, asset, payTo, amount ?? maxAmountRequired, name, version, assetTransferMethod, ...held];
}

function sizeOf(first: Exchange): Finding {
  const bytes = Object.entries(first.answer?.headers ?? {}).reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value) + 4,
    0,
  );
  const statement = `The headers have ${bytes} bytes; many clients and proxies accept ${MOST_HEADER_BYTES}`;
  return shownBy(first)("terms.header_size", statement, bytes <= MOST_HEADER_BYTES);
}
