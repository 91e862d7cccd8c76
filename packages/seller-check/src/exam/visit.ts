import type { Hex } from "viem";
import type { Exchange, HttpRequest, Transport } from "./exchange.ts";
import type { Ledger, Settled } from "./ledger.ts";
import { asQuoted, type Payer, type Payment, type Signing, signed } from "./payment.ts";
import type { Terms } from "./terms.ts";

/** No seller is sent more requests in one exam. */
export const MOST_REQUESTS = 40;
/** No seller is paid more often in one exam. */
export const MOST_PAYMENTS = 3;
/** How long the chain gets to show what a seller has settled. */
const SETTLES_WITHIN_MS = 30_000;

/** The request that is for sale. */
export interface Resource {
  readonly url: string;
  readonly method: string;
  readonly body: string | null;
  readonly contentType: string;
}

/** What an exam needs from outside. */
export interface VisitParts {
  readonly transport: Transport;
  readonly ledger: Ledger;
  readonly payer: Payer;
  /** Waits; for virtual time in tests. */
  readonly sleep: (ms: number) => Promise<unknown>;
  /** Until when the chain is waited for, in milliseconds since 1970; absent if the exam may take its time. */
  readonly endsAt?: number;
}

/** How a request differs from the resource's own. */
export type Change = Partial<Resource> & Pick<HttpRequest, "family">;

/** An exam's dealings with one seller: it counts, records and never exceeds its limits. */
export interface Visit {
  readonly resource: Resource;
  readonly exchanges: readonly Exchange[];
  /** Sends the resource's own request, with other headers or another form. */
  readonly ask: (headers?: Readonly<Record<string, string>>, change?: Change) => Promise<Exchange>;
  /** Sends it and closes the connection before the answer. */
  readonly askAndHangUp: (headers: Readonly<Record<string, string>>) => Promise<Exchange>;
  /** Signs a payment as quoted. Null once all have been signed. */
  readonly pay: (terms: Terms) => Promise<Payment | null>;
  /** What a payment has settled; waits for the chain to show it if `expected`. */
  readonly settled: (terms: Terms, payment: Payment, expected: boolean) => Promise<Settled | null>;
  /** Signs a payment that is not as quoted. */
  readonly sign: (signing: Signing) => Promise<Payment>;
  /** All that this exam's signatures have moved to others, in atomic units. */
  readonly spent: (terms: Terms) => Promise<bigint>;
  readonly payments: readonly Payment[];
  readonly parts: VisitParts;
}

/** Begins a visit. */
export async function visit(resource: Resource, parts: VisitParts): Promise<Visit> {
  const { transport, ledger, payer, sleep, endsAt = Number.POSITIVE_INFINITY } = parts;
  const exchanges: Exchange[] = [];
  const payments: Payment[] = [];
  const nonces: Hex[] = [];
  const since = await ledger.block();
  const record = async (request: HttpRequest, send: () => Promise<Exchange["answer"]>): Promise<Exchange> => {
    const number = exchanges.length + 1;
    if (number > MOST_REQUESTS) throw new Error(`an exam sends at most ${MOST_REQUESTS} requests`);
    const place = exchanges.push({ number, request, answer: null, failure: "it was not answered yet" }) - 1;
    const outcome = await send().then(
      (answer) => ({ answer, failure: answer === null ? "the connection was closed on purpose" : null }),
      (error: unknown) => ({ answer: null, failure: error instanceof Error ? error.message : String(error) }),
    );
    const exchange = { number, request, ...outcome };
    exchanges[place] = exchange;
    return exchange;
  };
  const requestOf = (headers: Readonly<Record<string, string>>, change: Change): HttpRequest => {
    const { url, method, body, contentType, ...over } = { ...resource, ...change };
    const described = body === null ? {} : { "content-type": contentType };
    return { method, url, headers: { ...described, ...headers }, body, ...over };
  };
  const sign = (signing: Signing) => {
    nonces.push(signing.authorization.nonce);
    return signed(payer, signing);
  };
  const look = ({ asset }: Terms, { authorization }: Payment) =>
    ledger.settlement({ asset, from: payer.address, nonce: authorization.nonce, since });
  return {
    resource,
    exchanges,
    payments,
    parts,
    ask: (headers = {}, change = {}) => {
      const request = requestOf(headers, change);
      return record(request, () => transport.send(request));
    },
    askAndHangUp: (headers) => {
      const request = requestOf(headers, {});
      return record(request, () => transport.sendAndHangUp(request).then(() => null));
    },
    async pay(terms) {
      if (payments.length === MOST_PAYMENTS) return null;
      const payment = await sign({ terms, authorization: asQuoted(terms, payer.address, await ledger.now()) });
      payments.push(payment);
      return payment;
    },
    sign,
    async settled(terms, payment, expected) {
      const until = expected ? Math.min(Date.now() + SETTLES_WITHIN_MS, endsAt) : 0;
      for (;;) {
        const found = await look(terms, payment);
        if (found !== null || Date.now() >= until) return found;
        await sleep(500);
      }
    },
    spent: ({ asset }) => ledger.spent({ asset, from: payer.address, nonces, since }),
  };
}
