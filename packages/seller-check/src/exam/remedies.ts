import type { CheckName } from "./vocabulary.ts";

/** The fix for a finding. */
export interface Remedy {
  readonly text: string;
  /** The rule, or further reading. */
  readonly link: string;
}

const X402 = "https://github.com/x402-foundation/x402/blob/main/specs";
const SPECIFICATION = `${X402}/x402-specification-v2.md`;
const OVER_HTTP = `${X402}/transports-v2/http.md`;
const EXACT_EVM = `${X402}/schemes/exact/scheme_exact_evm.md`;
const RETRIES = `${X402}/extensions/payment_identifier.md`;
const OFFER_RECEIPT = `${X402}/extensions/extension-offer-and-receipt.md`;
const rfc = (number: number, section: string) => `https://www.rfc-editor.org/rfc/rfc${number}#section-${section}`;

const REPLAYABLE = "Wrap stock middleware in `replayable()` of agent-payment-trust-replayable";

/** The findings of the checks, each with its fix. */
export const REMEDIES = {
  "terms.answers_402": {
    text: "Answer a request without a payment with 402 and the header PAYMENT-REQUIRED.",
    link: OVER_HTTP,
  },
  "terms.well_formed": {
    text: "Send the terms as base64 of JSON with every required member, each of the type that the specification requires.",
    link: SPECIFICATION,
  },
  "terms.names_this_url": {
    text: "Set resource.url to the public URL that buyers request. Behind a proxy, or on a host with several names, configure it (`resource` of a stock route) instead of taking it from the request.",
    link: SPECIFICATION,
  },
  "terms.versions_agree": {
    text: "Quote the same amounts and recipients in both versions of x402, or quote one version.",
    link: SPECIFICATION,
  },
  "terms.same_again": {
    text: "Keep amount, asset, network and payTo of one request fixed from quote to quote.",
    link: SPECIFICATION,
  },
  "terms.same_later": {
    text: "Quote the next buyer the same terms: a sale must not change them.",
    link: SPECIFICATION,
  },
  "terms.head": {
    text: "Refuse HEAD, or have it paid like GET. For stock middleware, declare the route without a method (`/haiku` in place of `GET /haiku`).",
    link: rfc(9110, "9.3.2"),
  },
  "terms.other_method": {
    text: "Answer methods that the route does not sell with 405, or have them paid too.",
    link: rfc(9110, "15.5.6"),
  },
  "terms.same_over_ip": {
    text: "Serve the same application at the A and the AAAA records of the host, or remove one of them.",
    link: rfc(8305, "1"),
  },
  "terms.header_size": {
    text: "Shorten descriptions, schemas and extensions in PAYMENT-REQUIRED until all headers fit into 8 KiB.",
    link: rfc(9110, "5.4"),
  },
  "purchase.payable": {
    text: "Set payTo to an address that the token's issuer has not put on its blacklist.",
    link: "https://github.com/circlefin/stablecoin-evm/blob/master/doc/tokendesign.md",
  },
  "purchase.served": {
    text: "Accept a payment that is exactly as quoted, and answer it with the result.",
    link: OVER_HTTP,
  },
  "purchase.not_charged": {
    text: "Settle only after the result is made, and never for a request that is refused.",
    link: EXACT_EVM,
  },
  "purchase.charged": {
    text: "Settle the exact amount to the quoted payTo within 30 seconds of the answer.",
    link: EXACT_EVM,
  },
  "purchase.response": {
    text: "Add the header PAYMENT-RESPONSE with the settlement to the paid answer.",
    link: OVER_HTTP,
  },
  "purchase.response_success": {
    text: "Set success in PAYMENT-RESPONSE to true when the payment has settled.",
    link: OVER_HTTP,
  },
  "purchase.response_transaction": {
    text: "Put the hash of the settlement's transaction into PAYMENT-RESPONSE, as the facilitator returns it.",
    link: OVER_HTTP,
  },
  "replay.again": {
    text: `Answer a settled payment with the stored answer, or refuse it; never make a second result for it. ${REPLAYABLE}.`,
    link: RETRIES,
  },
  "replay.copies_served": {
    text: `Let copies of a payment wait for the one that came first, and give them its answer. ${REPLAYABLE}.`,
    link: RETRIES,
  },
  "replay.copies_one_result": {
    text: `Handle one copy of a payment at a time: deliver only what this copy has settled. ${REPLAYABLE}.`,
    link: RETRIES,
  },
  "binding.other_body": {
    text: `Tie a settled payment to its request (method, URL and body), and refuse it for any other. ${REPLAYABLE}.`,
    link: RETRIES,
  },
  "binding.other_route": {
    text: `Refuse a payment whose resource.url is another route's, also at the same price. ${REPLAYABLE}.`,
    link: SPECIFICATION,
  },
  "binding.other_route_charged": {
    text: `Check what a payment is for before it is settled. ${REPLAYABLE}.`,
    link: SPECIFICATION,
  },
  "forgery.refused": {
    text: "Verify amount, recipient, validity and signature against your own terms, through your facilitator's /verify, before anything is served.",
    link: EXACT_EVM,
  },
  "forgery.not_settled": {
    text: "Settle only what was verified against your own terms, never terms that the payment brings along.",
    link: EXACT_EVM,
  },
  "forgery.charged_as_quoted": {
    text: "Settle each payment once, for the quoted amount, and nothing that was refused.",
    link: EXACT_EVM,
  },
  "lost_answer.answered": {
    text: `Store the answers of settled payments, and answer the same payment for the same request with the stored one. ${REPLAYABLE}.`,
    link: RETRIES,
  },
  "lost_answer.not_charged": {
    text: `Keep the answer of every charged payment until its buyer can have it. ${REPLAYABLE}.`,
    link: RETRIES,
  },
  "caching.not_stored": {
    text: "Send paid answers with Cache-Control: no-store, or private; check a CDN's own headers too.",
    link: rfc(9111, "5.2.2.5"),
  },
  "caching.unpaid_after": {
    text: "Keep caches between the buyer and the payment check from answering the route, and purge what they have stored.",
    link: rfc(9111, "3"),
  },
  "offer_receipt.offer_read": {
    text: "Sign offers in one of the extension's formats, jws or eip712, or leave them out.",
    link: OFFER_RECEIPT,
  },
  "offer_receipt.offer_true": {
    text: "Sign each offer with the members of its entry in accepts, by payTo or by the key of your did:web.",
    link: OFFER_RECEIPT,
  },
  "offer_receipt.receipt_read": {
    text: "Sign receipts in one of the extension's formats, jws or eip712, or leave them out.",
    link: OFFER_RECEIPT,
  },
  "offer_receipt.receipt_true": {
    text: "Sign the receipt for this payer, network and resource, by payTo or by the key of your did:web.",
    link: OFFER_RECEIPT,
  },
  "offer_receipt.receipt_transaction": {
    text: "Name the transaction of PAYMENT-RESPONSE in the receipt, or leave it empty.",
    link: OFFER_RECEIPT,
  },
} as const satisfies Readonly<Record<`${CheckName}.${string}`, Remedy>>;

/** The code of a finding: its check and a word. */
export type FindingCode = keyof typeof REMEDIES;

/** Returns the fix for a finding; null if it holds. */
export const remedyOf = ({ code, holds }: { readonly code: FindingCode; readonly holds: boolean }): Remedy | null =>
  holds ? null : REMEDIES[code];
