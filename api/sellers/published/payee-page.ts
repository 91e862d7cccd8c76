import { foreignLine } from "../../platform/page/foreign-text.ts";
import { html, longDay, type Markup } from "../../platform/page/html.ts";
import { mark, renderPage } from "../../platform/page/page.ts";
import { siteName } from "../record.ts";
import type { payeeExams } from "./payee.ts";
import { sellerVerifyUrl } from "./verification.ts";

type PayeeExams = ReturnType<typeof payeeExams>;

/** What exams say of a payee, as a page. Search engines do not list it: it is about a wallet that may know nothing of it. */
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
${exams.length === 0 ? html`<p>None.</p>` : html`<ul class="rows">${exams.map((exam) => row(exam, baseUrl))}</ul>`}
<p class="measure">What it did as a buyer is in <a href="/verify?wallet=${wallet}">the wallet’s own record</a>.</p></section>`,
  });
}

const row = (
  { origin, path_prefix: prefix, method, url, result, level, issued, cert_url }: PayeeExams["exams"][number],
  baseUrl: string,
): Markup => html`<li><a class="mono" href="${cert_url}">${foreignLine(`${method} ${url}`, 200)}</a>
${mark(result, result.toUpperCase())}
<span class="note soft small">Examined ${longDay(new Date(issued))}${level !== null && html`, level ${level}`}. Seller: <a class="mono" href="${sellerVerifyUrl(baseUrl, { origin, prefix })}">${siteName({ origin, prefix })}</a></span></li>`;
