import { CHECK_TITLES, type CheckResult } from "../../../packages/seller-check/src/exam/vocabulary.ts";
import { foreignLine } from "../../layout/foreign-text.ts";
import { html, type Markup } from "../../layout/html.ts";
import { mark } from "../../layout/page.ts";
import { exchangeId } from "./exchanges-section.ts";

const MARKS = {
  pass: ["pass", "Pass"],
  fail: ["fail", "Fail"],
  not_applicable: ["grey", "Does not apply"],
} as const;

/** Each check with what it found, and links to the exchanges that show it. Statements may quote the seller. */
export const checksSection = (checks: readonly CheckResult[], shown: ReadonlySet<number>): Markup =>
  checks.length === 0
    ? html``
    : html`<section aria-labelledby="checks"><h2 id="checks">Checks</h2>
<ul class="rows">${checks.map((check) => row(check, shown))}</ul></section>`;

const row = ({ check, outcome, reason, findings }: CheckResult, shown: ReadonlySet<number>): Markup => {
  const [tone, word] = MARKS[outcome];
  return html`<li><h3>${CHECK_TITLES[check]}</h3>${mark(tone, word)}
<div class="note small">${reason !== null && html`<p>${foreignLine(reason, 500)}</p>`}
${findings.length > 0 && html`<ul>${findings.map((finding) => html`<li>${line(finding, shown)}</li>`)}</ul>`}</div></li>`;
};

const line = ({ statement, holds, exchanges }: CheckResult["findings"][number], shown: ReadonlySet<number>): Markup =>
  html`${!holds && html`<strong>Not so:</strong> `}${foreignLine(statement, 500)} ${exchanges.length > 0 && html`<span class="soft">(${linksTo(exchanges, shown)})</span>`}`;

const linksTo = (numbers: readonly number[], shown: ReadonlySet<number>): readonly Markup[] =>
  numbers.map(
    (number, place) =>
      html`${place > 0 && ", "}${shown.has(number) ? html`<a href="#${exchangeId(number)}" aria-label="Exchange ${number}">${number}</a>` : number}`,
  );
