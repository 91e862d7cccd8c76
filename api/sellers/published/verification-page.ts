import { foreignLine, html, longDay, type Markup } from "../../platform/page/html.ts";
import { mark, renderPage, sellerForm } from "../../platform/page/page.ts";
import { siteName } from "../record.ts";
import { type payeeExams, type SellerVerification, sellerVerifyUrl, siteQuery } from "./verification.ts";

const MOST_REASONS = 5;

/** Renders an origin's verification record as a page. */
export function renderSellerVerification(record: SellerVerification, baseUrl: string): string {
  const { origin, path_prefix: prefix, certs, reasons } = record;
  const [site, name] = [{ origin, prefix }, siteName({ origin, prefix })];
  const verdict = record.verified ? "Verified" : record.tested ? "Not verified" : "Not tested";
  const tone = record.verified ? "pass" : record.tested ? "fail" : "gray";
  const url = sellerVerifyUrl(baseUrl, site);
  return renderPage({
    title: `${verdict}: ${name}`,
    description: reasons[0]?.text ?? record.verified_means,
    ...(record.tested ? { canonical: url } : {}),
    jsonUrl: `${url}&format=json`,
    current: "/#verify",
    main: html`<article class="deed ${tone}"><p class="eyebrow">Seller</p>
<p class="mono">${name}</p>
<h1>${mark(tone, verdict)}</h1>
${stateOf(record)}</article>
<section aria-labelledby="certificates"><h2 id="certificates">Exams</h2>
${certs.length === 0 ? html`<p>None. The seller can <a href="/inspect">take one</a>.</p>` : html`<ul class="rows">${certs.map(row)}</ul>`}
<p class="measure soft small">${record.counting_rule}</p></section>
<section aria-labelledby="credential"><h2 id="credential">Portable credential</h2>
<p class="measure">The same record as a <a href="/credential?${siteQuery(site)}">signed credential (JSON)</a>. Anyone can check it offline against our <a href="/.well-known/jwks.json">public keys (JSON)</a>.</p></section>
<section aria-labelledby="again"><h2 id="again">Check another seller</h2>${sellerForm()}</section>`,
  });
}

/** Renders what verified means, or why the origin is not verified. */
function stateOf({ reasons, verified_means }: SellerVerification): Markup {
  if (reasons.length === 0) return html`<p class="state">${verified_means}</p>`;
  const more = reasons.length - MOST_REASONS;
  return html`${reasons
    .slice(0, MOST_REASONS)
    .map(
      ({ text, cert_url }) =>
        html`<p class="state">${text}${cert_url !== null && html` <a href="${cert_url}">See the certificate</a>.`}</p>`,
    )}
${more > 0 && html`<p>And ${more} more: see the exams below.</p>`}`;
}

const row = (cert: SellerVerification["certs"][number]): Markup => {
  const tone = cert.fresh ? cert.result : "gray";
  return html`<li><a class="mono" href="${cert.cert_url}">${foreignLine(`${cert.method} ${cert.url}`, 200)}</a>
${mark(tone, cert.result.toUpperCase())}
<span class="note soft small">${stateIn(cert)}, examined ${longDay(new Date(cert.issued))}${cert.level !== null && html`, level ${cert.level}`}. Paid to <span class="mono">${cert.pay_to}</span></span></li>`;
};

function stateIn({ fresh, corrected, reversed, superseded }: SellerVerification["certs"][number]): string {
  if (fresh) return "Counts";
  if (corrected) return "Withdrawn by the examiner";
  if (reversed) return "A payment is gone from the chain";
  return superseded ? "Superseded" : "Expired";
}

type PayeeExams = ReturnType<typeof payeeExams>;

/**
 * Renders the exams of a payee as a page. It is not for search engines, because the owner of the wallet may not know
 * about it.
 */
export function renderPayee({ wallet, note, exams }: PayeeExams, baseUrl: string): string {
  return renderPage({
    title: `Exams of the payee ${wallet}`,
    description: note,
    jsonUrl: `${baseUrl}/payee/${wallet}?format=json`,
    main: html`<div class="hero"><p class="eyebrow">Payee</p>
<h1>Exams of a payee</h1>
<p class="mono">${wallet}</p>
<p class="measure">${note}</p></div>
<section aria-labelledby="exams"><h2 id="exams">Exams that count</h2>
${exams.length === 0 ? html`<p>None.</p>` : html`<ul class="rows">${exams.map((exam) => examRow(exam, baseUrl))}</ul>`}
<p class="measure">What it did as a buyer is in <a href="/verify?wallet=${wallet}">the wallet’s own record</a>.</p></section>`,
  });
}

const examRow = (
  { origin, path_prefix: prefix, method, url, result, level, issued, cert_url }: PayeeExams["exams"][number],
  baseUrl: string,
): Markup => html`<li><a class="mono" href="${cert_url}">${foreignLine(`${method} ${url}`, 200)}</a>
${mark(result, result.toUpperCase())}
<span class="note soft small">Examined ${longDay(new Date(issued))}${level !== null && html`, level ${level}`}. Seller: <a class="mono" href="${sellerVerifyUrl(baseUrl, { origin, prefix })}">${siteName({ origin, prefix })}</a></span></li>`;
