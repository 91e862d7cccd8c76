import { HonoAdapter } from "@x402/hono";
import type { Context } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { PAYMENT_HEADERS } from "../../packages/escrow/src/envelope.ts";
import type { StoredAnswer } from "../platform/http/answer.ts";
import { Problem } from "../platform/http/errors.ts";
import { type Clients, clientOf, readBody, readBodyWithin } from "../platform/http/request.ts";
import { type Offer, type PaidRoute, type QuotedRoute, type RouteTerms, schemesOf } from "../platform/http/route.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Address } from "../platform/wallet.ts";
import { type Admitted, readForm } from "./admission.ts";
import { lose, settlementPending } from "./answers.ts";
import {
  type ChallengeParts,
  challenge,
  type Offers,
  type PaymentChallenge,
  type Reasons,
  routeExtensions,
} from "./challenge.ts";
import type { Answerable, Gate } from "./gate.ts";
import { bodyJson, fingerprint, parsePaymentHeaders, toBase64Json } from "./header.ts";
import { MOST_FAILED, MOST_IN_FLIGHT } from "./journal.ts";
import type { OfferReceipt } from "./receipt.ts";
import { diagnosticOf } from "./refusal.ts";
import type { Extensions, PresentedPayment, SchemeRules } from "./scheme.ts";
import { MAX_TIMEOUT_SECONDS } from "./schemes/exact.ts";
import type { Answer } from "./step-types.ts";
import type { UsdcWatch } from "./usdc-chain.ts";

export interface PayableParts {
  readonly gate: Gate;
  readonly schemes: ReadonlyMap<string, SchemeRules>;
  readonly usdc: Pick<UsdcWatch, "closed">;
  readonly payTo: Address;
  readonly baseUrl: string;
  readonly offerReceipt: OfferReceipt;
  readonly now: () => Date;
  readonly peers: Clients;
  readonly log: { warn(facts: object, message: string): void };
}

/** Short if another request is working on the payment, longer if the chain has to advance. */
const RETRY_AFTER_SECONDS = {
  held: "1",
  crowded: "2",
  "no place": "2",
  "gas lost": "600",
  "no signer": "10",
  unsettled: "5",
  failed: "10",
  unavailable: "5",
  paused: "60",
} as const;
const DO_NOT_SIGN_AGAIN = "Do not sign again; send the same header again.";

type Handler = (c: Context) => Promise<Response>;

const PAYMENT_REQUIRED = "Payment required: sign one of the offered terms and send the request again.";
const UNPAID: Reasons = { error: PAYMENT_REQUIRED };
const NOT_OFFERED = {
  code: "invalid_payment_requirements",
  error: "The payment was signed for terms that this call did not offer; sign the offered terms.",
};

/** Creates the handler of a paid route: a 402 without a payment, otherwise the gate's answer. */
export function payable(route: PaidRoute, parts: PayableParts): Handler {
  const { gate, payTo } = parts;
  const { path: resource, description, terms } = route;
  const accepted = acceptedBy(terms, parts);
  const offerOn = (network: Network): Offer => ({
    terms: { network, payTo: terms.seller ?? payTo, value: terms.price },
    ...{ resource, description, maxTimeoutSeconds: MAX_TIMEOUT_SECONDS },
  });
  const [first, ...others] = terms.networks;
  const offers: Offers = [offerOn(first), ...others.map(offerOn)];
  const required = listed(route, offers, accepted);
  return async (c) => {
    if (terms.closed !== undefined) throw new Problem("not_available", { detail: terms.closed });
    const payment = presentedPayment(c, accepted);
    if (payment === null) {
      assertPayable(offers, parts);
      const form = await formOf(route, c);
      if (form !== null && "input" in form) await prepare(route, form.input, clientOf(c, parts.peers));
      return demand(c, required(form === null ? UNPAID : reasonsOf(form)));
    }
    const body = await readBody(c);
    const query = new URL(c.req.url).searchParams;
    const print = fingerprint({ method: route.method, route: route.id, query, body });
    const value = withQuery(bodyJson(body), query, route.hooks?.query ?? []);
    const client = clientOf(c, parts.peers);
    const offer = offers.find(({ terms }) => isOn(terms.network, payment)) ?? offers[0];
    const request = { route, terms: offer.terms, payment, fingerprint: print, body: value, over: null, client };
    const { answer, about } = await gate.pay(request);
    if (answer.type === "result") await route.hooks?.beforeResult?.(about.key, client);
    const link = answer.type === "result" ? await linkOf(route, answer.response, parts.log) : null;
    if (link !== null) c.header("link", link);
    return answer.type === "pay"
      ? demand(c, required({ error: answer.error, diagnostic: diagnosticOf(answer) }))
      : respond(c, answer, { offer, payment, accepted, about });
  };
}

/** Throws if USDC is closed to us on all of the networks. Clients must not sign a payment that cannot settle. */
function assertPayable(offers: Offers, { usdc }: Pick<PayableParts, "usdc">): void {
  const causes = offers.map(({ terms }) => usdc.closed(terms));
  const [cause] = causes;
  if (cause && causes.every((one) => one !== null))
    throw new Problem("not_available", { detail: cause, headers: { "retry-after": RETRY_AFTER_SECONDS.paused } });
}

/** Whether the client claims to have paid on this network. */
const isOn = (network: Network, { claimed }: PresentedPayment): boolean =>
  claimed.network === network || claimed.network === NETWORKS[network].key;

/**
 * Returns the `Link` header of an answer. If it cannot be read, the answer is sent without it, because it has been paid
 * for.
 */
async function linkOf(route: PaidRoute, answer: StoredAnswer, log: PayableParts["log"]): Promise<string | null> {
  try {
    return (await route.hooks?.links?.(answer)) ?? null;
  } catch (error) {
    log.warn({ err: error, route: route.id }, "the Link header of an answer could not be read");
    return null;
  }
}

/** How long to wait for a body before the terms are sent. They do not depend on it. */
const BODY_WITHIN_MS = 1_000;

/** Parses the body of a request without a payment; null if the body is empty or has not arrived. */
async function formOf(route: PaidRoute, c: Context): Promise<Admitted | null> {
  try {
    const body = await (route.hooks?.prepare === undefined ? readBodyWithin(c, BODY_WITHIN_MS) : readBody(c));
    if (body === null) return null;
    const value = withQuery(bodyJson(body), new URL(c.req.url).searchParams, route.hooks?.query ?? []);
    const form = readForm({ route, body: value });
    const isProbe = body.length === 0 && value === null;
    return isProbe && "refused" in form ? null : form;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { refused: { type: "malformed", detail: error.details.detail } };
  }
}

const MOST_WORDED = 3;

/** Reports first that a body would be refused. The 402 still has the terms, as x402 demands. */
function reasonsOf(form: Admitted): Reasons {
  if ("input" in form) return UNPAID;
  const { refused } = form;
  if (refused.type !== "malformed" && refused.type !== "unacceptable") return UNPAID;
  const errors = refused.errors ?? [{ path: "", message: refused.detail }];
  const worded = errors
    .slice(0, MOST_WORDED)
    .map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  const more = errors.length > MOST_WORDED ? `; and ${errors.length - MOST_WORDED} more` : "";
  const why = `${worded.join("; ").replace(/\.$/, "")}${more}`;
  return {
    error: `This body would be refused, and nothing charged: ${why}. Send a valid one. ${PAYMENT_REQUIRED}`,
    diagnostic: {
      code: refused.type === "malformed" ? "malformed_request" : "unacceptable",
      retry: "never",
      errors: [...errors],
    },
  };
}

/** Lets the route look up its prerequisites before it can be paid for. */
async function prepare(route: PaidRoute, input: unknown, client: string): Promise<void> {
  const notYet = (await route.hooks?.prepare?.(input, client)) ?? null;
  if (notYet === null) return;
  throw new Problem(notYet.isSpent ? "too_many_requests" : "not_available", {
    detail: `${notYet.detail} Nothing was charged.`,
    headers: { "retry-after": String(notYet.retryAfterSeconds) },
  });
}

/** Merges the query's members into the body. A member in both must have the same value. */
function withQuery(body: unknown, query: URLSearchParams, names: readonly string[]) {
  const given = names.flatMap((name) => query.getAll(name).map((value) => [name, value] as const));
  if (body === undefined || given.length === 0) return body;
  if (body !== null && (typeof body !== "object" || Array.isArray(body))) return body;
  const value: Record<string, unknown> = { ...body };
  for (const [name, text] of given) {
    if (value[name] !== undefined && value[name] !== text)
      throw new Problem("malformed_request", {
        detail: `${name} appears more than once, with different values. Nothing was charged.`,
      });
    value[name] = text;
  }
  return value;
}

/** Creates the handler of a quoted route: an unpaid call gets its terms, and a paid one buys what it signed for. */
export function quoted(quotedRoute: QuotedRoute, parts: PayableParts): Handler {
  const { gate } = parts;
  const accepted = acceptedBy({}, parts);
  const required = (offer: Offer, reasons: Reasons) => challengeFor([offer], accepted, reasons);
  return async (c) => {
    const payment = presentedPayment(c, accepted);
    const quotation = await quotedRoute.quote(c);
    if (payment === null) return demand(c, required(await quotation.offer(), UNPAID));
    const match = await quotation.match(payment.authorization);
    if (match === null)
      return demand(c, required(quotation.repeat(), { ...NOT_OFFERED, diagnostic: diagnosticOf(NOT_OFFERED) }));
    const { route, offer, purchase, paymentId, input, over, withhold, deliver } = match;
    // Another signature for the same purchase is a different request. It is refused and not charged.
    const query = new URLSearchParams({ purchase, nonce: payment.authorization.nonce });
    const print = fingerprint({ method: route.method, route: route.id, query, body: new Uint8Array() });
    // A quoted URL contains its buyer's token, so its extensions, which repeat the URL, are not passed on for a
    // listing.
    const own = { ...payment, paymentId, extensions: undefined };
    const client = clientOf(c, parts.peers);
    const order = { route, terms: offer.terms, payment: own, fingerprint: print, body: input, over, client };
    const answered = await (withhold === undefined ? gate.pay(order) : gate.withhold({ ...order, withhold }));
    const { answer, about } = answered;
    const { type } = answer;
    const loss = type === "result" || type === "conflict" || type === "over" ? await deliver?.(type) : null;
    if (loss && answer.type === "result") return lose(c, loss, { payment, network: offer.terms.network, answer });
    return answer.type === "pay"
      ? demand(c, required(offer, { error: answer.error, diagnostic: diagnosticOf(answer) }))
      : respond(c, answer, { offer, payment, accepted, about });
  };
}

interface Accepted extends ChallengeParts {
  readonly schemes: readonly [SchemeRules, ...SchemeRules[]];
  readonly offerReceipt: OfferReceipt;
  readonly now: () => Date;
}

/** Returns the schemes of a route. A scheme that is not configured is our own bug, caught at startup. */
function acceptedBy(terms: Pick<RouteTerms, "schemes">, { schemes, ...parts }: PayableParts): Accepted {
  const named = (name: string): SchemeRules => {
    const scheme = schemes.get(name);
    if (scheme === undefined) throw new Error(`no payment scheme is called ${name}`);
    return scheme;
  };
  const [first, ...others] = schemesOf(terms);
  const { baseUrl, offerReceipt, now } = parts;
  return { schemes: [named(first), ...others.map(named)], baseUrl, offerReceipt, now };
}

const challengeFor = (offers: Offers, accepted: Accepted, reasons: Reasons): Promise<PaymentChallenge> =>
  challenge(offers, accepted, { ...reasons, at: accepted.now() });

/** The same for a listed route, with as much of its discovery entry as the terms and offers leave room for. */
function listed(route: PaidRoute, offers: Offers, accepted: Accepted): (reasons: Reasons) => Promise<PaymentChallenge> {
  const tryOut = (extensions: Extensions, reasons = UNPAID) =>
    challengeFor(offers, { ...accepted, extensions }, reasons);
  let extensions: Promise<Extensions> | null = null;
  return async (reasons) => {
    extensions ??= routeExtensions(route, tryOut);
    return tryOut(await extensions, reasons);
  };
}

function presentedPayment(c: Context, { schemes }: Accepted): PresentedPayment | null {
  const request = new HonoAdapter(c);
  const headers = Object.fromEntries(PAYMENT_HEADERS.map((name) => [name, request.getHeader(name)]));
  const payment = parsePaymentHeaders(headers, schemes);
  if (payment !== null && "malformed" in payment) throw new Problem("malformed_payment", { detail: payment.malformed });
  return payment;
}

async function demand(c: Context, challenged: Promise<PaymentChallenge>): Promise<Response> {
  const { header, body } = await challenged;
  const headers = { "content-type": "application/json", "payment-required": header, "cache-control": "no-store" };
  return c.body(body, 402, headers);
}

function outcome({ charged, because }: Extract<Answer, { type: "wait" }>): string {
  if (charged) return "The payment has settled, but its result is not ready yet.";
  if (because === "crowded")
    return `The payer already has the maximum number of payments in flight: ${MOST_IN_FLIGHT}, or fewer after one has failed on the chain. This one was not stored or charged.`;
  if (because === "no place")
    return "The payment has not settled yet. It was not sent, and nothing was charged, because our transactions already fill the queue that nodes keep for one account.";
  if (because === "gas lost")
    return "The payment has not settled yet. It was not sent, and nothing was charged, because payments that failed on the chain have used up the gas budget for the last 24 hours. Until there is room again, we only send payments from payers that have paid here before and have had none fail since.";
  if (because === "no signer")
    return "The payment has not settled yet. It was not sent, and nothing was charged, because the account that sends payments cannot sign at the moment.";
  return because === "unavailable"
    ? "We cannot currently tell whether the payment has settled."
    : "The payment has not settled yet.";
}

interface Paid {
  readonly offer: Offer;
  readonly payment: PresentedPayment;
  readonly accepted: Accepted;
  readonly about: Answerable;
}

async function respond(c: Context, answer: Exclude<Answer, { type: "pay" }>, paid: Paid): Promise<Response> {
  switch (answer.type) {
    case "result":
      return result(c, answer, paid);
    case "conflict":
      throw new Problem("payment_conflict", { detail: `${answer.detail} Nothing was charged for this request.` });
    case "malformed":
      throw new Problem("malformed_request", {
        detail: answer.detail,
        ...(answer.errors ? { errors: answer.errors } : {}),
      });
    case "unacceptable":
      throw new Problem("unacceptable", { detail: answer.detail, ...(answer.errors ? { errors: answer.errors } : {}) });
    case "unavailable":
      throw new Problem("not_available", {
        detail: `${answer.detail} Nothing was charged.`,
        headers: { "retry-after": RETRY_AFTER_SECONDS.unavailable },
      });
    case "barred": {
      const seconds = Math.max(1, Math.ceil(answer.seconds));
      throw new Problem("payer_refused", {
        detail: `${MOST_FAILED} payments of this payer were mined in time within an hour without settling, because its balance or its wallet's answer had changed after the simulation. None is accepted for another ${seconds} seconds. This one was not stored or charged. Keep the balance until a payment has settled; then come back and sign a new one.`,
        headers: { "retry-after": String(seconds) },
      });
    }
    case "over":
      throw new Problem("session_over", { detail: answer.detail });
    case "wait":
      throw waiting(answer, paid);
    case "done":
      throw new Error("a request was answered like a job");
    default:
      return answer satisfies never;
  }
}

/**
 * Returns the problem for a client that has to retry. A payment that was accepted and has not settled is
 * `settlement_pending`.
 */
function waiting(answer: Extract<Answer, { type: "wait" }>, { payment, offer }: Paid): Problem {
  const detail = `${outcome(answer)} ${DO_NOT_SIGN_AGAIN}`;
  const isPending = !answer.charged && answer.because !== "crowded";
  const pending = { payment, network: offer.terms.network, transaction: null, message: detail };
  const headers = isPending ? settlementPending(pending) : {};
  return new Problem("payment_pending", {
    detail,
    headers: { "retry-after": RETRY_AFTER_SECONDS[answer.because], ...headers },
  });
}

async function result(c: Context, answer: Extract<Answer, { type: "result" }>, paid: Paid): Promise<Response> {
  const { offer, payment, accepted, about } = paid;
  const { response, settlement, replay } = answer;
  const headers: Record<string, string> = {
    // A sale may end in a problem, which is as final as any result.
    "content-type": response.status >= 400 ? "application/problem+json" : "application/json",
    "cache-control": "private, no-store",
    ...recordLink(response),
  };
  if (settlement !== null) {
    const rules = accepted.schemes.find(({ id }) => id === about.scheme);
    const { network, payer } = about.key;
    const { transaction } = settlement;
    const url = `${accepted.baseUrl}${offer.resource}`;
    const settled = {
      success: true,
      transaction,
      network: (payment.version === "v1" ? NETWORKS[network].key : network) as `${string}:${string}`,
      payer,
      ...(rules?.namesAmount === true ? { amount: about.value.toString() } : {}),
      extensions: await accepted.offerReceipt.receipt({ network, url, payer, transaction }, about.receivedAt),
    };
    const encoded = toBase64Json(settled);
    headers["payment-response"] = encoded;
    if (payment.version === "v1") headers["x-payment-response"] = encoded;
  }
  if (replay) headers["x-idempotent-replay"] = "true";
  return c.body(Buffer.from(response.body), response.status as ContentfulStatusCode, headers);
}

const recordLink = ({ location }: StoredAnswer): Record<string, string> =>
  location === null ? {} : { "content-location": location };
