import { PROBLEMS, type ProblemCode } from "../platform/http/errors.ts";
import { MAX_BODY_BYTES } from "../platform/http/request.ts";
import { html, type Markup } from "../platform/page/html.ts";
import { MAX_WALLETS } from "../score/index.ts";

/** The cause and the remedy of each problem. The compiler requires an entry for every code in the catalog. */
const MEANINGS: Readonly<Record<ProblemCode, { readonly when: string; readonly remedy: string }>> = {
  malformed_request: {
    when: "The path, query or body cannot be parsed; errors[] names each invalid field.",
    remedy: "Fix it and resend. Nothing was charged.",
  },
  malformed_payment: {
    when: "The payment header cannot be decoded or is too large, or two headers disagree.",
    remedy: "Send one header: PAYMENT-SIGNATURE for x402 version 2, X-PAYMENT for version 1.",
  },
  not_the_merchant: {
    when: "The forwarded delivery is not signed by the payment’s merchant.",
    remedy: "Sign Delivery as GET /escrow publishes it, over the body exactly as sent. No funds moved.",
  },
  not_the_payer: {
    when: "The contest is not signed by the payer of the payment.",
    remedy: "Sign Contest as GET /escrow publishes it, with the account or the wallet that paid. Nothing was changed.",
  },
  not_found: {
    when: "Nothing exists at this URL, or there is no record with this id.",
    remedy: "Check the URL and the id.",
  },
  method_not_allowed: {
    when: "This path does not support that method.",
    remedy: "The Allow header lists the methods it supports.",
  },
  payment_conflict: {
    when: "This authorization or payment identifier belongs to a different request.",
    remedy: "Send the request it was signed for, or sign a new payment.",
  },
  escrow_over: {
    when: "The escrowed payment has already been refunded, or can no longer be released in time.",
    remedy: "None needed: the buyer has been refunded or soon will be.",
  },
  contest_conflict: {
    when: "The payer has already contested this payment with another claim.",
    remedy:
      "None. A payment can be contested only once. GET /escrow/contest/{payment} returns the claim and its outcome.",
  },
  contest_over: {
    when: "The window to contest the payment has closed.",
    remedy: "None. The release has gone ahead.",
  },
  wrong_payer: {
    when: "A behavioral test session belongs to the wallet that opened it.",
    remedy: "Pay from that wallet, or start a new session.",
  },
  session_held: {
    when: "An order from a behavioral test’s public address was signed, but the wallet’s agent uses a session’s token.",
    remedy: "Use next.url from the response that started the session. There is no result yet, and nothing was charged.",
  },
  session_over: { when: "The behavioral test session has ended.", remedy: "Start a new one." },
  evidence_removed: {
    when: "The evidence of an exam was removed by court order or for privacy.",
    remedy: "Use the record: the result, the digest of the evidence, and the log entry remain.",
  },
  body_too_large: {
    when: "The body is larger than this route accepts.",
    remedy: `Send less; the usual limit is ${MAX_BODY_BYTES / 1024} KiB.`,
  },
  unacceptable: {
    when: `The request is well-formed but not accepted: for example, ${MAX_WALLETS + 1} wallets, a duplicate wallet, or a claim the policy refuses.`,
    remedy: "errors[] explains why and, for a claim, cites the policy rule. Nothing was charged.",
  },
  too_many_requests: {
    when: "This IP address has exceeded the rate limit.",
    remedy: "Wait for the number of seconds in Retry-After.",
  },
  payer_gas_spent: {
    when: "The payment’s fee does not cover the gas for its release, and the payer’s daily gas allowance is used up.",
    remedy: "Forward the delivery again after midnight UTC, or charge a price whose fee covers a release.",
  },
  payer_refused: {
    when: "Within one hour, several of the wallet’s payments were mined but did not settle.",
    remedy:
      "Leave the balance in the wallet until a payment has settled. Wait for the number of seconds in Retry-After, then sign a new payment. Nothing was charged.",
  },
  headers_too_large: { when: "The headers exceed the server’s size limit.", remedy: "Send smaller headers." },
  request_timeout: {
    when: "The headers or the body of the request did not arrive in time.",
    remedy: "Send the whole request without pauses, over a new connection. Nothing was charged.",
  },
  internal_error: {
    when: "Something went wrong on our side.",
    remedy:
      "Resend a paid request unchanged. You won’t be charged twice. If the error persists, report the request_id.",
  },
  not_available: {
    when: "A required component is temporarily unavailable.",
    remedy: "Wait for the number of seconds in Retry-After, then resend the same request.",
  },
  payment_pending: {
    when: "The payment was submitted but has not appeared on-chain yet.",
    remedy: "Do not sign again. Resend the same header; you are charged only once.",
  },
};

/** Renders the catalog of errors. Every problem's `type` links to its entry here. */
export const errorsChapter = (): Markup => html`<section aria-labelledby="errors"><h2 id="errors">Errors</h2>
<p class="measure">Every error is <code>application/problem+json</code> (RFC 9457): <code>type, title, status, detail, code, request_id</code>, and <code>errors[]</code> when fields are invalid. The meaning of a <code>code</code> never changes; <code>type</code> is the address of its entry here, relative to the service. A 402 is not an error. It carries the terms, and <code>error</code> explains why a payment was rejected or a body would be. Its extension <code>diagnostic</code> is for programs: a <code>code</code>, and a <code>retry</code> that is <code>same</code> (resend the request), <code>new</code> (sign again) or <code>never</code>. A 503 has a <code>diagnostic</code> too. A rejected payment is never submitted later.</p>
<ul class="rows">${Object.entries(PROBLEMS).map(
  ([code, { status, title }]) => html`<li id="${code}"><h3>${title} <code class="soft">${code}</code></h3>
<span class="price">${status}</span><span class="note">${MEANINGS[code as ProblemCode].when} <span class="soft">${MEANINGS[code as ProblemCode].remedy}</span></span></li>`,
)}</ul></section>`;
