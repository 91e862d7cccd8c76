import type { ExamReport } from "./exam/examine.ts";
import type { Exchange } from "./exam/exchange.ts";
import { CHECK_WEIGHTS } from "./exam/level.ts";
import { plain, plainJson } from "./exam/plain.ts";
import { remedyOf } from "./exam/remedies.ts";
import { CHECK_TITLES, type CheckResult } from "./exam/vocabulary.ts";

const MARKS = { pass: "PASS", fail: "FAIL", not_applicable: "n/a " } as const;
/** How much of a body a report repeats, in bytes. */
const SHOWN_BYTES = 2_048;
/** How much of a line, in characters. */
const SHOWN_CHARACTERS = 400;

/** The report as lines for a terminal: each check, what failed in it, and how to mend that. */
export function reportText({ level, results, exchanges, spent }: ExamReport): string {
  const lines = results.flatMap((result) => [
    `${MARKS[result.outcome]}  ${CHECK_TITLES[result.check]}`,
    ...details(result),
  ]);
  const verdict = level === null ? "no certificate would be given" : `level ${level}`;
  return [...lines, "", `${verdict}; ${exchanges.length} requests, ${spent} atomic units spent`].join("\n");
}

function details({ reason, findings }: CheckResult): readonly string[] {
  if (reason !== null) return [`      ${plain(reason, SHOWN_CHARACTERS)}`];
  return findings
    .filter(({ holds }) => !holds)
    .flatMap((finding) => {
      const { statement, exchanges } = finding;
      const shownBy = exchanges.length === 0 ? "" : ` (requests ${exchanges.join(", ")})`;
      const remedy = remedyOf(finding);
      return [
        `      not so: ${plain(statement, SHOWN_CHARACTERS)}${shownBy}`,
        ...(remedy === null ? [] : [`      remedy: ${remedy.text} ${remedy.link}`]),
      ];
    });
}

/** The same as JSON text that a terminal can show: a seller's control characters stand in it as escapes. */
export const reportJsonText = (report: ExamReport): string => plainJson(JSON.stringify(reportJson(report), null, 2));

/** The report as JSON: snake_case members, amounts as text, bodies as text of up to 2 KiB. */
export const reportJson = ({ level, results, exchanges, terms, spent }: ExamReport): object => ({
  level,
  checks: results.map(({ check, outcome, reason, findings }) => ({
    check,
    weight: CHECK_WEIGHTS[check],
    outcome,
    reason,
    findings: findings.map((finding) => ({ ...finding, remedy: remedyOf(finding) })),
  })),
  terms:
    terms === null
      ? null
      : {
          network: terms.network,
          asset: terms.asset,
          amount: `${terms.amount}`,
          pay_to: terms.payTo,
          x402_version: terms.version,
        },
  spent: `${spent}`,
  exchanges: exchanges.map(exchangeJson),
});

const exchangeJson = ({ number, request, answer, failure }: Exchange): object => ({
  number,
  request,
  answer:
    answer === null
      ? null
      : {
          status: answer.status,
          headers: answer.headers,
          body: new TextDecoder().decode(answer.body.subarray(0, SHOWN_BYTES)),
          bytes: answer.body.length,
        },
  failure,
});
