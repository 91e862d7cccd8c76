import { type Answer, type Exchange, isSuccess, statusOf } from "../exchange.ts";
import { choose, type Payable, type Quote, readQuotes, record, resourceUrl, type Terms } from "../terms.ts";
import type { Visit } from "../visit.ts";
import { type CheckResult, type Finding, judged } from "../vocabulary.ts";

/** Servers and proxies refuse more than 8 KiB of headers by default. */
const MOST_HEADER_BYTES = 8_192;

/** A check of what is asked for, with the terms that the rest of the exam pays, or why it can pay none of them. */
export interface TermsResult {
  readonly result: CheckResult;
  readonly terms: Terms | string;
}

/** Asks without paying: twice as a buyer would, once by HEAD and once by another method. */
export async function checkTerms(visit: Visit, payable: Payable): Promise<TermsResult> {
  const first = await visit.ask();
  const again = await visit.ask();
  const head = await visit.ask({}, { method: "HEAD", body: null });
  const other = await visit.ask({}, otherMethod(visit.resource.method));
  const everywhere = await overEachFamily(visit);
  const { url } = visit.resource;
  const quotes = first.answer === null ? [] : readQuotes(first.answer);
  const terms =
    first.answer?.status === 402 ? choose(quotes, payable, url) : `the answer is ${statusOf(first)}, not 402`;
  const findings = [
    finding(`An unpaid request is answered 402, not ${statusOf(first)}`, first.answer?.status === 402, first),
    ...quotes.map(({ version, problem }) =>
      finding(
        `The quote in x402 version ${version} is well formed${problem === null ? "" : `: ${problem}`}`,
        problem === null,
        first,
      ),
    ),
    ...quotes.filter(({ problem }) => problem === null).flatMap((quote) => trueOf(quote, url, first)),
    ...agreement(quotes, first),
    sameTerms("A second request is quoted the same", first, again),
    finding(
      `HEAD is refused or quoted the same, and answered ${statusOf(head)}`,
      isRefused(head) || (head.answer?.status === 402 && isSame(first.answer, head.answer, 2)),
      head,
    ),
    finding(
      `${other.request.method} is not answered for nothing, and answered ${statusOf(other)}`,
      other.answer !== null && !isSuccess(other),
      other,
    ),
    ...everywhere,
    sizeOf(first),
  ];
  return { result: judged("terms", findings), terms };
}

/** A host may be another machine over IPv6. What does not answer there sells nothing, and buyers go on to IPv4. */
async function overEachFamily(visit: Visit): Promise<readonly Finding[]> {
  const families = (await visit.parts.transport.families?.(visit.resource.url)) ?? [];
  if (families.length < 2) return [];
  const [four, six] = [await visit.ask({}, { family: 4 }), await visit.ask({}, { family: 6 })];
  const silent = [four, six].find(({ answer }) => answer === null);
  if (silent === undefined) return [sameTerms("IPv4 and IPv6 are quoted the same", four, six)];
  return [finding(`IPv4 and IPv6 are not compared: ${statusOf(silent)}`, true, four, six)];
}

const otherMethod = (method: string) =>
  method === "GET" ? ({ method: "POST", body: "{}" } as const) : ({ method: "GET", body: null } as const);

const finding = (statement: string, holds: boolean, ...exchanges: readonly Exchange[]): Finding => ({
  statement,
  holds,
  exchanges: exchanges.map(({ number }) => number),
});

const isRefused = ({ answer }: Exchange): boolean => answer !== null && [404, 405, 501].includes(answer.status);

/** `resource` is this URL; a query or a fragment that it leaves out is no contradiction. */
function trueOf({ version, accepts, resource }: Quote, url: string, first: Exchange): readonly Finding[] {
  const named = version === 1 ? accepts.map((entry) => entry.resource) : [resourceUrl(resource)];
  const isTrue = named.every((given) => typeof given === "string" && isSameResource(given, url));
  return [finding(`The resource of version ${version} is this URL, and is named ${named.join(", ")}`, isTrue, first)];
}

function isSameResource(named: string, url: string): boolean {
  if (!URL.canParse(named)) return false;
  const [one, other] = [new URL(named), new URL(url)];
  return one.origin === other.origin && one.pathname === other.pathname && ["", other.search].includes(one.search);
}

/** Where a 402 quotes in both versions, a buyer of either pays the same. */
function agreement(quotes: readonly Quote[], first: Exchange): readonly Finding[] {
  const [one, other] = quotes;
  if (one === undefined || other === undefined) return [];
  const prices = ({ version, accepts }: Quote) =>
    accepts.map((entry) => `${entry.payTo} ${version === 1 ? entry.maxAmountRequired : entry.amount}`.toLowerCase());
  const known = new Set(prices(one));
  return [
    finding(
      "Both versions quote the same",
      prices(other).every((price) => known.has(price)),
      first,
    ),
  ];
}

function sameTerms(statement: string, one: Exchange, other: Exchange): Finding {
  return finding(statement, isSame(one.answer, other.answer, 1), one, other);
}

/** Offers, deadlines and error texts vary; what is to be paid, and for what, does not. An answer to HEAD has no body to compare. */
function isSame(one: Answer | null, other: Answer | null, from: 1 | 2): boolean {
  if (one === null || other === null) return false;
  const terms = (answer: Answer) =>
    readQuotes(answer)
      .filter(({ version }) => version >= from)
      .map(({ accepts, resource }) => [resourceUrl(resource), accepts.map(toBePaid)]);
  return JSON.stringify(terms(one)) === JSON.stringify(terms(other));
}

function toBePaid({ scheme, network, asset, payTo, amount, maxAmountRequired, extra }: Quote["accepts"][number]) {
  const { name, version, assetTransferMethod } = record(extra);
  return [scheme, network, asset, payTo, amount ?? maxAmountRequired, name, version, assetTransferMethod];
}

function sizeOf(first: Exchange): Finding {
  const bytes = Object.entries(first.answer?.headers ?? {}).reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value) + 4,
    0,
  );
  return finding(
    `The headers have ${bytes} bytes; many clients and proxies take ${MOST_HEADER_BYTES}`,
    bytes <= MOST_HEADER_BYTES,
    first,
  );
}
