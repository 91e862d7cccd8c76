import type { ExamReport } from "./exam/examine.ts";
import type { Exchange } from "./exam/exchange.ts";
import { CHECK_TITLES, type CheckResult } from "./exam/vocabulary.ts";

const MARKS = { pass: "PASS", fail: "FAIL", not_applicable: "n/a " } as const;
/** How much of a body a report repeats, in bytes. */
const SHOWN_BYTES = 2_048;

/** The report as lines for a terminal: each check, and what failed in it. */
export function reportText({ level, results, exchanges, spent }: ExamReport): string {
  const lines = results.flatMap((result) => [
    `${MARKS[result.outcome]}  ${CHECK_TITLES[result.check]}`,
    ...details(result),
  ]);
  const verdict = level === null ? "no certificate would be given" : `level ${level}`;
  return [
    ...lines,
    "",
    `${verdict}; ${exchanges.length} requests, ${spent ?? "an unknown number of"} atomic units spent`,
  ].join("\n");
}

function details({ reason, findings }: CheckResult): readonly string[] {
  if (reason !== null) return [`      ${reason}`];
  return findings
    .filter(({ holds }) => !holds)
    .map(
      ({ statement, exchanges }) =>
        `      not so: ${statement}${exchanges.length === 0 ? "" : ` (requests ${exchanges.join(", ")})`}`,
    );
}

/** The report as JSON: snake_case members, amounts as text, bodies as text of up to 2 KiB. */
export const reportJson = ({ level, results, exchanges, terms, spent }: ExamReport): object => ({
  level,
  checks: results.map(({ check, outcome, reason, findings }) => ({ check, outcome, reason, findings })),
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
  spent: spent === null ? null : `${spent}`,
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
