import { formatUnits } from "viem";
import type { ExamReport } from "./exam/examine.ts";
import type { Exchange } from "./exam/exchange.ts";
import { CHECK_WEIGHTS } from "./exam/level.ts";
import { plain, plainJson } from "./exam/plain.ts";
import { remedyOf } from "./exam/remedies.ts";
import { usdc } from "./exam/terms.ts";
import { CHECK_TITLES, type CheckResult } from "./exam/vocabulary.ts";

const MARKS = { pass: "PASS", fail: "FAIL", not_applicable: "n/a " } as const;
/** The part of a body that a report repeats, in bytes. */
const SHOWN_BYTES = 2_048;
/** The part of a line, in characters. */
const SHOWN_CHARACTERS = 400;

/** Returns the report as lines for a terminal: each check, its failed findings, and their fixes. */
export function reportText({ level, results, exchanges, spent }: ExamReport): string {
  const lines = results.flatMap((result) => [
    `${MARKS[result.outcome]}  ${CHECK_TITLES[result.check]}`,
    ...details(result),
  ]);
  const verdict = level === null ? "No level: no certificate would be issued." : `Level ${level}.`;
  const sent = `The exam sent ${exchanges.length} requests and spent ${usdc(spent)}.`;
  return [...lines, "", ...hintOf(exchanges), `${verdict} ${sent}`].join("\n");
}

/** A suggestion if the route is not sold by the requested method. */
function hintOf([first]: readonly Exchange[]): readonly string[] {
  const status = first?.answer?.status ?? 0;
  if (first?.request.method !== "GET" || ![404, 405].includes(status)) return [];
  return [`The URL answers GET with ${status}. If it is sold by POST, add --method POST.`, ""];
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
        `      Failed: ${plain(statement, SHOWN_CHARACTERS)}${shownBy}`,
        ...(remedy === null ? [] : [`      Fix: ${remedy.text} ${remedy.link}`]),
      ];
    });
}

/** Returns the report as JSON text that a terminal can show, with a seller's control characters escaped. */
export const reportJsonText = (report: ExamReport): string => plainJson(JSON.stringify(reportJson(report), null, 2));

/** Returns the report as JSON: snake_case members, amounts as strings, bodies as text of up to 2 KiB. */
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
  spent_usdc: formatUnits(spent, 6),
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
