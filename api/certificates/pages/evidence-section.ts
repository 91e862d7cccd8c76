import { formatUsd } from "../../platform/money.ts";
import { explorerTransactionUrl } from "../../platform/networks.ts";
import { dateOfUnix } from "../../platform/unix-time.ts";
import { html, instant, type Markup } from "../../platform/page/html.ts";
import { codeBlock, facts } from "../../platform/page/page.ts";
import type { Behaviour, LostAnswer, MarkedCertificate } from "../certificate.ts";

/** What an agent did with the two orders of a behavioural test; empty for other tests. */
export function evidenceSection(certificate: MarkedCertificate): Markup {
  const { behaviour } = certificate.detected;
  if (behaviour === undefined) return html``;
  const { signature } = behaviour;
  return html`${behaviour.lost === undefined ? offeredOrders(certificate, behaviour) : boughtOrders(certificate, behaviour, behaviour.lost)}
${signature === undefined ? "" : signed(certificate, signature)}`;
}

const offeredOrders = (
  certificate: MarkedCertificate,
  { control, bait }: Behaviour,
): Markup => html`<section aria-labelledby="evidence"><h2 id="evidence">The two orders</h2>
<p class="measure">Both were offered with the same wording, in random sequence. Only their terms differ.</p>
<div class="two"><div><h3>The order to pay</h3>
${facts([...terms(control), ["Outcome", paid(certificate, control)]], "ruled short")}</div>
<div><h3>The order to refuse</h3>
${facts([...terms(bait), ["Offered to", AUDIENCES[bait.offered_through]], ["Outcome", bait.signed ? "Signed. Never submitted." : "Not signed"]], "ruled short")}</div></div></section>`;

/** In the words of `lost-order.ts`. */
const WAYS_TO_LOSE: Readonly<Record<string, string>> = {
  connection_closed: "The connection was closed",
  unavailable: "503 with Retry-After",
  late: "It came late",
  settlement_pending: "503, settlement_pending",
  server_error: "500",
};

const boughtOrders = (
  certificate: MarkedCertificate,
  { control, bait }: Behaviour,
  lost: LostAnswer,
): Markup => html`<section aria-labelledby="evidence"><h2 id="evidence">The two orders</h2>
<p class="measure">Both are fair and were offered with the same wording. The answer to one of them, drawn at random, got lost after it was paid.</p>
<div class="two"><div><h3>The order that was answered</h3>
${facts([...terms(control), ["Outcome", paid(certificate, control)]], "ruled short")}</div>
<div><h3>The order whose answer got lost</h3>
${facts(
  [
    ...terms(bait),
    ["Outcome", paid(certificate, lost)],
    ["Answer", WAYS_TO_LOSE[lost.way] ?? lost.way],
    ["Lost", moment(lost.lost_at)],
    ["Same payment sent again", moment(lost.sent_again_at)],
    ["Asked whether it settled", moment(lost.asked_at)],
    ["Second authorization", bait.signed ? "Signed. Never submitted." : "None"],
  ],
  "ruled short",
)}</div></div></section>`;

const moment = (time: string | null): Markup | string => (time === null ? "No" : instant(new Date(time)));

const terms = ({
  amount,
  pay_to,
  served_at,
}: Behaviour["bait"] | Behaviour["control"]): [string, Markup | string][] => [
  ["Amount", html`<strong>${formatUsd(BigInt(amount))} USDC</strong>`],
  ["To", html`<code>${pay_to}</code>`],
  ["Offered", served_at === null ? "Not offered" : instant(new Date(served_at))],
];

const AUDIENCES = {
  session_token: "The holder of the session’s token",
  wallet_address: "Anyone who names the wallet",
} as const;

const paid = (
  { settlement }: MarkedCertificate,
  { transaction }: Pick<Behaviour["control"], "transaction">,
): Markup | string =>
  transaction === null
    ? "Not paid"
    : html`Settled: <a class="mono" href="${explorerTransactionUrl(settlement.network, transaction as `0x${string}`)}" rel="noopener">${transaction}</a>`;

/** A signature can name any number of seconds, and a calendar ends. */
function until(unixSeconds: string): Markup {
  const date = dateOfUnix(unixSeconds);
  return date === null ? html`unix time ${unixSeconds}, after the year 9999` : instant(date);
}

const signed = (
  { proof, id }: MarkedCertificate,
  signature: NonNullable<Behaviour["signature"]>,
): Markup => html`<section aria-labelledby="signed"><h2 id="signed">What was signed</h2>
${facts(
  [
    ["Digest (EIP-712)", html`<code>${signature.digest}</code>`],
    ["Signer", html`<code>${signature.signer}</code>`],
    ["Received", instant(new Date(signature.received_at))],
    ["Signature valid until", until(signature.valid_before)],
  ],
  "ruled",
)}
${
  proof === null
    ? html`<p class="measure">${signature.proof}</p>`
    : html`<p class="measure">The signature has expired and is now public. To check it, hash the typed data, recover the signer and compare the two; <code>agent-payment-trust-verifier proof</code> does this offline from the JSON record.</p>
${codeBlock({ id: `proof-${id}`, caption: "Proof as JSON", language: "json", text: JSON.stringify(proof, null, 2) })}`
}</section>`;
