import { type ExamWallet, MOST_PAYMENTS, openExamWallet } from "./exam-wallet.ts";
import type { Exchange, HttpRequest, Transport } from "./exchange.ts";
import type { Ledger } from "./ledger.ts";
import { ExaminersFault } from "./ledger.ts";
import { asQuoted, numbered, type Payer, type Payment, type Signing, signed } from "./payment.ts";
import type { Terms } from "./terms.ts";

/** The maximum number of requests to a seller in one exam. */
export const MOST_REQUESTS = 40;

/** The request that is for sale. */
export interface Resource {
  readonly url: string;
  readonly method: string;
  readonly body: string | null;
  readonly contentType: string;
}

/** The dependencies of an exam. */
export interface VisitParts {
  readonly transport: Transport;
  readonly ledger: Ledger;
  readonly payer: Payer;
  /** Waits; replaced by virtual time in tests. */
  readonly sleep: (ms: number) => Promise<unknown>;
  /** Milliseconds since 1970; the machine's clock by default. */
  readonly now?: () => number;
  /**
   * The time until which to wait for the chain, in milliseconds since 1970, or 30 seconds if that is later; absent if
   * the exam may take its time.
   */
  readonly endsAt?: number;
}

/** The differences between a request and the resource's own. */
export type Change = Partial<Resource> & Pick<HttpRequest, "family">;

/** An exam's interaction with one seller, which it counts, records, and keeps within its limits. */
export interface Visit extends ExamWallet {
  readonly resource: Resource;
  readonly exchanges: readonly Exchange[];
  /** The number of requests that the exam may still send. */
  readonly left: () => number;
  /** Sends the resource's own request, with other headers or in another form. */
  readonly ask: (headers?: Readonly<Record<string, string>>, change?: Change) => Promise<Exchange>;
  /** Sends it and closes the connection before the response. */
  readonly askAndHangUp: (headers: Readonly<Record<string, string>>) => Promise<Exchange>;
  /** Signs a payment as quoted. Null once all have been signed. */
  readonly pay: (terms: Terms) => Promise<Payment | null>;
  /** Signs a payment that differs from the quote. */
  readonly sign: (signing: Signing) => Promise<Payment>;
  readonly payments: readonly Payment[];
  readonly parts: VisitParts;
}

/** Returns the reason why a seller did not respond. @throws ExaminersFault if a fault of ours prevented the request */
function silence(error: unknown): string {
  if (error instanceof ExaminersFault) throw error;
  return error instanceof Error ? error.message : String(error);
}

/** Begins a visit. @throws ExaminersFault if the chain cannot be read */
export async function visit(resource: Resource, parts: VisitParts): Promise<Visit> {
  const { transport, payer } = parts;
  const payments: Payment[] = [];
  const { exchanges, record, answeredAt } = recording(parts.now);
  const wallet = await openExamWallet(parts, { payments, answeredAt });
  const sign = ({ terms, draft, really }: Signing) => {
    const given = numbered(terms, draft);
    wallet.noted(given.authorization.nonce);
    return signed(payer, { terms, ...given, ...(really && { really }) });
  };
  return {
    ...wallet,
    resource,
    exchanges,
    payments,
    parts,
    sign,
    left: () => MOST_REQUESTS - exchanges.length,
    ask(headers = {}, change = {}) {
      const request = requestOf(resource, headers, change);
      return record(request, () => transport.send(request));
    },
    askAndHangUp(headers) {
      const request = requestOf(resource, headers);
      return record(request, () => transport.sendAndHangUp(request).then(() => null));
    },
    async pay(terms) {
      if (payments.length === MOST_PAYMENTS) return null;
      const payment = await sign({ terms, draft: asQuoted(terms, payer.address, await wallet.signingTime()) });
      payments.push(payment);
      return payment;
    },
  };
}

function requestOf(resource: Resource, headers: Readonly<Record<string, string>>, change: Change = {}): HttpRequest {
  const { url, method, body, contentType, ...over } = { ...resource, ...change };
  const described = body === null ? {} : { "content-type": contentType };
  return { method, url, headers: { ...described, ...headers }, body, ...over };
}

/** Records each exchange in the order of requests, even if several are in progress at the same time. */
function recording(now: VisitParts["now"] = Date.now) {
  const exchanges: Exchange[] = [];
  let answeredAt = 0;
  return {
    exchanges,
    /** The time of the last response, in Unix seconds. */
    answeredAt: () => answeredAt,
    async record(request: HttpRequest, send: () => Promise<Exchange["answer"]>): Promise<Exchange> {
      const number = exchanges.length + 1;
      if (number > MOST_REQUESTS) throw new Error(`an exam sends at most ${MOST_REQUESTS} requests`);
      const place = exchanges.push({ number, request, answer: null, failure: "it was not answered yet" }) - 1;
      const outcome = await send().then(
        (answer) => ({ answer, failure: answer === null ? "the connection was closed on purpose" : null }),
        (error: unknown) => ({ answer: null, failure: silence(error) }),
      );
      const exchange = { number, request, ...outcome };
      exchanges[place] = exchange;
      answeredAt = now() / 1000;
      return exchange;
    },
  };
}
