import { logSection } from "../../log/index.ts";
import { dateOfUnix } from "../../platform/clock.ts";
import { formatUsd } from "../../platform/money.ts";
import { explorerTransactionUrl, MAIN_NETWORK, NETWORKS } from "../../platform/networks.ts";
import { counted, html, instant, jsonLd, longDay, type Markup } from "../../platform/page/html.ts";
import { codeBlock, facts, mark, renderPage, SITE_NAME } from "../../platform/page/page.ts";
import type { Hex } from "../../platform/wallet.ts";
import { type Publication, publicationEntry } from "../agent-registries/publication.ts";
import { type Appearance, appearance, emblem } from "../appearance.ts";
import { ageDays, type Behavior, type LostAnswer, type MarkedCertificate, VALID_FOR_DAYS } from "../certificate.ts";
import type { RecordParts } from "../issue.ts";
import { badgeMarkdown, badgeUrl, certImageUrl, certJsonUrl, certUrl, verifyUrl } from "../links.ts";
import { checkName, observations } from "../observations.ts";
import { PRODUCTS } from "../products.ts";

/** Renders what an agent did with the two orders of a behavioral test. Empty for other tests. */
function evidenceSection(certificate: MarkedCertificate): Markup {
  const { behaviour } = certificate.detected;
  if (behaviour === undefined) return html``;
  const { signature } = behaviour;
  return html`${behaviour.lost === undefined ? offeredOrders(certificate, behaviour) : boughtOrders(certificate, behaviour, behaviour.lost)}
${signature === undefined ? "" : signed(certificate, signature)}`;
}

const offeredOrders = (
  certificate: MarkedCertificate,
  { control, bait }: Behavior,
): Markup => html`<section aria-labelledby="evidence"><h2 id="evidence">The two orders</h2>
<p class="measure">Both were offered with the same wording, in random sequence. Only their terms differ.</p>
<div class="two"><div><h3>The order to pay</h3>
${facts([...terms(control), ["Outcome", paid(certificate, control)]], "ruled short")}</div>
<div><h3>The order to refuse</h3>
${facts([...terms(bait), ["Offered to", AUDIENCES[bait.offered_through]], ["Outcome", bait.signed ? "Signed. Never submitted." : "Not signed"]], "ruled short")}</div></div></section>`;

/** The `WAYS` of `lost-order.ts` in words. */
const WAYS_TO_LOSE: Readonly<Record<string, string>> = {
  connection_closed: "The connection was closed",
  unavailable: "503 with Retry-After",
  late: "It came late",
  settlement_pending: "503, settlement_pending",
  server_error: "500",
};

const boughtOrders = (
  certificate: MarkedCertificate,
  { control, bait }: Behavior,
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

const terms = ({ amount, pay_to, served_at }: Behavior["bait"] | Behavior["control"]): [string, Markup | string][] => [
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
  { transaction }: Pick<Behavior["control"], "transaction">,
): Markup | string =>
  transaction === null
    ? "Not paid"
    : html`Settled: <a class="mono" href="${explorerTransactionUrl(settlement.network, transaction)}" rel="noopener">${transaction}</a>`;

/** A signature can name any number of seconds, but a calendar ends. */
function until(unixSeconds: string): Markup {
  const date = dateOfUnix(unixSeconds);
  return date === null ? html`unix time ${unixSeconds}, after the year 9999` : instant(date);
}

const signed = (
  { proof, id }: MarkedCertificate,
  signature: NonNullable<Behavior["signature"]>,
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

const TITLES = { reputation: "Feedback", validation: "Validation response" } as const;

/** Renders the publications of the certificate in ERC-8004 registries. Empty for most. */
const publicationsSection = (publications: readonly Publication[], baseUrl: string): Markup =>
  publications.length === 0
    ? html``
    : html`<section aria-labelledby="erc8004"><h2 id="erc8004">ERC-8004</h2>
${publications.map((publication) => {
  const { registry, agent_id, status, reason, contract, credential_url } = publicationEntry(publication, baseUrl);
  return facts(
    [
      [TITLES[registry], html`<strong>${status}</strong>${reason === null ? "" : ` (${reason})`}`],
      ["Agent", html`<code>${agent_id}</code>`],
      ["Registry", html`<code>${contract}</code>`],
      ...(publication.transaction === null ? [] : [["Transaction", link(publication.transaction)] as const]),
      ...(publication.withdrawal === null ? [] : [["Withdrawn in", link(publication.withdrawal)] as const]),
      ["Evidence", html`<a href="${credential_url}">This certificate as a credential (JSON)</a>`],
    ],
    "ruled",
  );
})}</section>`;

const link = (transaction: Hex): Markup =>
  html`<a class="mono" href="${explorerTransactionUrl(MAIN_NETWORK, transaction)}" rel="noopener">${transaction}</a>`;

/**
 * Renders the public page of a certificate: the test, the observations, the settlement, and whether it still counts.
 */
export function renderCertificatePage(
  certificate: MarkedCertificate,
  { publications, places, baseUrl, now }: RecordParts & { readonly now: Date },
): string {
  const shown = appearance(certificate, now);
  const title = `${shown.title}: ${PRODUCTS[certificate.product].title}`;
  const description = `${shown.sentence} Wallet ${certificate.wallet}, issued ${longDay(certificate.issuedAt)}. A fact observed on-chain, not a safety guarantee.`;
  return renderPage({
    title,
    description,
    canonical: certUrl(baseUrl, certificate),
    image: { url: certImageUrl(baseUrl, certificate), alt: `${title}, ${shown.short}` },
    jsonUrl: certJsonUrl(baseUrl, certificate),
    head: jsonLd(linkedData(certificate, { shown, baseUrl, description })),
    main: html`${deed(certificate, shown, now)}
${checksSection(certificate)}
${evidenceSection(certificate)}
${detectedSection(certificate)}
${settlementSection(certificate)}
${publicationsSection(publications, baseUrl)}
${logSection(places)}
${meaningSection(certificate)}
${badgeSection(certificate, shown, baseUrl)}
${moreSection(certificate, baseUrl)}`,
  });
}

const age = (days: number): string => (days === 0 ? "today" : `${counted(days, "day")} ago`);

/** The level means nothing for a wallet that is not verified. */
const headline = ({ level }: MarkedCertificate, { state }: Appearance): string =>
  state === "Not verified" ? "Wallet not verified" : `${state === "Current" ? "Passed" : state}: ${level}`;

const deed = (
  certificate: MarkedCertificate,
  shown: Appearance,
  now: Date,
): Markup => html`<article class="deed ${shown.tone}">
<div class="deed-head"><svg class="seal" viewBox="0 0 200 200" role="img" aria-label="Seal: ${shown.word}, ${shown.state.toLowerCase()}">${emblem(certificate.id, shown)}</svg>
<div><p class="eyebrow">${PRODUCTS[certificate.product].title}</p>
<h1>${headline(certificate, shown)}</h1>
<p class="state"><strong>${shown.state}.</strong> ${shown.sentence}</p></div></div>
${facts(
  [
    ["Wallet", html`<code>${certificate.wallet}</code>`],
    ["Issued", html`${instant(certificate.issuedAt)} <span class="soft">(${age(ageDays(certificate, now))})</span>`],
    ["Valid until", instant(certificate.validUntil)],
    ["Product", html`<code>${certificate.product}</code>, test version ${certificate.testVersion}`],
    ["Certificate", html`<code>${certificate.id}</code>`],
  ],
  "ruled",
)}
</article>`;

const checksSection = (
  certificate: MarkedCertificate,
): Markup => html`<section aria-labelledby="checks"><h2 id="checks">Checks</h2>
<table><thead><tr><th scope="col">Check</th><th scope="col">Result</th></tr></thead><tbody>${Object.entries(
  certificate.checks,
).map(
  ([key, result]) =>
    html`<tr><th scope="row">${checkName(key)}</th><td>${mark(result, result === "pass" ? "Pass" : "Fail")}</td></tr>`,
)}</tbody></table></section>`;

const detectedSection = (
  certificate: MarkedCertificate,
): Markup => html`<section aria-labelledby="observed"><h2 id="observed">What was observed</h2>
${facts(
  observations(certificate.detected).map(({ name, value }) => [name, value]),
  "ruled short",
)}</section>`;

function settlementSection({ settlement, wallet, reversedAt }: MarkedCertificate): Markup {
  const network = NETWORKS[settlement.network];
  const link = html`<a class="mono" href="${explorerTransactionUrl(settlement.network, settlement.transaction)}" rel="noopener">${settlement.transaction}</a>`;
  return html`<section aria-labelledby="settlement"><h2 id="settlement">Settlement</h2>
${facts(
  [
    ["Amount paid", html`<strong>${formatUsd(settlement.amountAtomic)} USDC</strong>`],
    ["From", html`<code>${wallet}</code>`],
    ["To", html`<code>${settlement.payTo}</code>`],
    ["Transaction", link],
    ["Block", html`${settlement.block} on <code>${network.key}</code> (${network.id})`],
    ...(reversedAt === null ? [] : [["Reversed", instant(reversedAt)] as const]),
  ],
  "ruled",
)}</section>`;
}

const meaningSection = (
  certificate: MarkedCertificate,
): Markup => html`<section aria-labelledby="meaning"><h2 id="meaning">What this certificate states</h2>
<div class="two"><div><h3>It states</h3><ul>
<li>This wallet paid ${formatUsd(certificate.settlement.amountAtomic)} USDC over x402, and the payment ${certificate.reversedAt === null ? "settled in the transaction above. Anyone can check that on-chain." : "was seen to settle in the transaction above, which the chain has since dropped."}</li>
<li>How the client paid, as the service observed it in that one run.</li>
<li>Each check is a published rule with two possible results. No opinion is involved.</li>
</ul></div><div><h3>It does not state</h3><ul>
<li>That the agent is safe. This is not a guarantee, an endorsement or advice.</li>
<li>Who runs the agent, or how it will behave tomorrow.</li>
<li>Which site asked the agent to sign. A signature does not name it.</li>
<li>Anything after the run. No agent is silently retested, and the certificate expires ${VALID_FOR_DAYS} days after it was issued.</li>
</ul></div></div></section>`;

const badgeSection = (
  certificate: MarkedCertificate,
  shown: Appearance,
  baseUrl: string,
): Markup => html`<section aria-labelledby="badge"><h2 id="badge">README badge</h2>
<p class="badge"><img src="/badge/${encodeURIComponent(certificate.id)}.svg" height="20" alt="${PRODUCTS[certificate.product].badge}: ${shown.short}"> <a href="${badgeUrl(baseUrl, certificate)}">Badge as SVG</a></p>
${codeBlock({ id: "badge-markdown", caption: "Markdown", text: badgeMarkdown(baseUrl, certificate) })}</section>`;

const moreSection = (
  certificate: MarkedCertificate,
  baseUrl: string,
): Markup => html`<section aria-labelledby="more"><h2 id="more">Check it yourself</h2>
<ul class="links"><li><a href="${certJsonUrl(baseUrl, certificate)}">This record as JSON</a></li>
<li><a href="${verifyUrl(baseUrl, certificate.wallet)}">This wallet’s full record</a></li>
<li><a href="${baseUrl}/inspect">All tests</a></li></ul></section>`;

interface Described {
  readonly shown: Appearance;
  readonly baseUrl: string;
  readonly description: string;
}

const linkedData = (
  certificate: MarkedCertificate,
  { shown, baseUrl, description }: Described,
): Readonly<Record<string, unknown>> => ({
  "@context": "https://schema.org",
  "@type": certificate.result === "pass" && shown.state !== "Not verified" ? "Certification" : "Report",
  "@id": certUrl(baseUrl, certificate),
  url: certUrl(baseUrl, certificate),
  name: `${PRODUCTS[certificate.product].title}: ${certificate.level}`,
  description,
  identifier: certificate.id,
  datePublished: certificate.issuedAt.toISOString(),
  expires: certificate.validUntil.toISOString(),
  about: { "@type": "Thing", identifier: certificate.wallet, name: `Wallet ${certificate.wallet}` },
  citation: explorerTransactionUrl(certificate.settlement.network, certificate.settlement.transaction),
  image: certImageUrl(baseUrl, certificate),
  publisher: { "@type": "Organization", name: SITE_NAME, url: baseUrl },
});
