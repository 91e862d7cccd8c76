import { MAX_BODY_BYTES } from "../kernel/body.ts";
import { PROBLEMS, type ProblemCode } from "../kernel/errors.ts";
import { html, type Markup } from "../layout/html.ts";
import { MAX_WALLETS } from "../score/products.ts";

/** What each problem means and what its caller can do; the compiler asks for every code of the catalogue. */
const MEANINGS: Readonly<Record<ProblemCode, { readonly when: string; readonly remedy: string }>> = {
  malformed_request: {
    when: "The path, the query or the body cannot be read; errors[] names each wrong member.",
    remedy: "Correct it and send it again. Nothing was charged.",
  },
  malformed_payment: {
    when: "The payment header cannot be decoded, is too large, or there are two that differ.",
    remedy: "Send one header: PAYMENT-SIGNATURE for x402 version 2, X-PAYMENT for version 1.",
  },
  not_the_merchant: {
    when: "A forwarded delivery is not signed by the merchant of the payment.",
    remedy: "Sign Delivery(paymentId, status, bodySha256) over the body as it was sent. Nothing moved.",
  },
  not_found: { when: "There is nothing at this address, or no record of this id.", remedy: "Check the id." },
  method_not_allowed: { when: "The path takes other methods.", remedy: "Allow names them." },
  payment_conflict: {
    when: "This authorization or payment identifier belongs to another request.",
    remedy: "Send the request that it was signed for, or sign a new payment.",
  },
  escrow_over: {
    when: "The escrowed payment is refunded already, or can no longer be released in time.",
    remedy: "Nothing: the buyer has the money back or is about to.",
  },
  wrong_payer: {
    when: "The session of a behavioural test belongs to the wallet that opened it.",
    remedy: "Pay with that wallet, or start a session of your own.",
  },
  session_over: { when: "The session of a behavioural test has ended.", remedy: "Start another one." },
  body_too_large: {
    when: "The body is larger than this route takes.",
    remedy: `Send less; ${MAX_BODY_BYTES / 1024} KiB are the usual limit.`,
  },
  unacceptable: {
    when: `The request is well-formed, and not taken: ${MAX_WALLETS + 1} wallets, a wallet twice, a claim that the policy refuses.`,
    remedy: "errors[] says why, and for a claim the rule of the policy. Nothing was charged.",
  },
  too_many_requests: {
    when: "This address has sent more requests than the limit.",
    remedy: "Wait for the seconds in Retry-After.",
  },
  headers_too_large: { when: "The headers are larger than the server reads.", remedy: "Send smaller ones." },
  internal_error: {
    when: "Something went wrong on our side.",
    remedy: "Send a paid request again as it was: nothing is lost, nothing is charged twice. Report the request_id.",
  },
  not_available: {
    when: "A part that the answer needs does not answer at the moment.",
    remedy: "Wait for the seconds in Retry-After, then send the same request again.",
  },
  payment_pending: {
    when: "The payment was sent to the chain, and is not seen there yet.",
    remedy: "Do not sign again. Send the same header again: it is charged once.",
  },
};

/** The catalogue of errors; the `type` of every problem points to its entry. */
export const errorsChapter = (): Markup => html`<section aria-labelledby="errors"><h2 id="errors">Errors</h2>
<p class="measure">Every error is <code>application/problem+json</code> (RFC 9457): <code>type, title, status, detail, code, request_id</code>, and <code>errors[]</code> where members are wrong. <code>code</code> never changes its meaning; <code>type</code> is the address of its entry here, relative to the service. A 402 is no error: it carries the terms, and says in <code>error</code> why a payment was not taken. Such a payment is never submitted afterwards.</p>
<ul class="rows">${Object.entries(PROBLEMS).map(
  ([code, { status, title }]) => html`<li id="${code}"><h3>${title} <code class="soft">${code}</code></h3>
<span class="price">${status}</span><span class="note">${MEANINGS[code as ProblemCode].when} <span class="soft">${MEANINGS[code as ProblemCode].remedy}</span></span></li>`,
)}</ul></section>`;
