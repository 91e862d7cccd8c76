import { CHECK_WEIGHTS } from "../../../packages/seller-check/src/exam/level.ts";
import { remedyOf } from "../../../packages/seller-check/src/exam/remedies.ts";
import { CHECK_TITLES, type CheckResult } from "../../../packages/seller-check/src/exam/vocabulary.ts";
import { foreignLine } from "../../platform/page/foreign-text.ts";
import { html, type Markup } from "../../platform/page/html.ts";
import { mark } from "../../platform/page/page.ts";
import { exchangeId } from "./exchanges-section.ts";

const MARKS = {
  pass: ["pass", "Pass"],
  fail: ["fail", "Fail"],
  not_applicable: ["grey", "Does not apply"],
} as const;

/** Each check with its weight, what it found, how to mend it, and links to the exchanges that show it. Statements may quote the seller. */
export const checksSection = (checks: readonly CheckResult[], shown: ReadonlySet<number>): Markup =>
  checks.length === 0
    ? html``
    : html`<section aria-labelledby="checks"><h2 id="checks">Checks</h2>
<ul class="rows">${checks.map((check) => row(check, shown))}</ul></section>`;

const row = ({ check, outcome, reason, findings }: CheckResult, shown: ReadonlySet<number>): Markup => {
  const [tone, word] = MARKS[outcome];
  return html`<li><h3>${CHECK_TITLES[check]}</h3>${mark(tone, word)}
<div class="note small"><p class="soft">Weight: ${CHECK_WEIGHTS[check]}</p>${reason !== null && html`<p>${foreignLine(reason, 500)}</p>`}
${findings.length > 0 && html`<ul>${findings.map((finding) => html`<li>${line(finding, shown)}</li>`)}</ul>`}</div></li>`;
};

function line(finding: CheckResult["findings"][number], shown: ReadonlySet<number>): Markup {
  const { statement, holds, exchanges } = finding;
  const remedy = remedyOf(finding);
  return html`${!holds && html`<strong>Not so:</strong> `}${foreignLine(statement, 500)} ${exchanges.length > 0 && html`<span class="soft">(${linksTo(exchanges, shown)})</span>`}${remedy !== null && html`<br><strong>Remedy:</strong> ${remedy.text} <a href="${remedy.link}" rel="noopener">What the rule says</a>`}`;
}

const linksTo = (numbers: readonly number[], shown: ReadonlySet<number>): readonly Markup[] =>
  numbers.map(
    (number, place) =>
      html`${place > 0 && ", "}${shown.has(number) ? html`<a href="#${exchangeId(number)}" aria-label="Exchange ${number}">${number}</a>` : number}`,
  );
