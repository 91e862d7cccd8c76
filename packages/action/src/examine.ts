import { writeFile } from "node:fs/promises";
import { Failure, formatUsd } from "./fields.ts";
import type { Examine, LeastLevel } from "./inputs.ts";
import type { Report } from "./report.ts";

type SellerCheck = typeof import("../../seller-check/src/index.ts");
type ExamReport = Awaited<ReturnType<SellerCheck["examine"]>>;
type Result = ExamReport["results"][number];

/** Runs the seller's exam, writes its whole report to a file, and fails below the required level. */
export async function examine(inputs: Examine): Promise<Report> {
  const { resource, other, rpcUrl, maxPrice, reportPath, privateKey, leastLevel } = inputs;
  const { holdExam, namedRoute, reportJson } = await sellerCheck();
  const route = other === null ? null : namedRoute(other, resource);
  if (typeof route === "string") throw new Failure(`other ${route}.`);
  const report = await holdExam({
    resource,
    other: route,
    rpcUrl,
    privateKey,
    asset: undefined,
    ceiling: maxPrice,
  }).catch((error: unknown) => {
    throw new Failure(`The exam could not be held, and nothing was judged: ${reasonOf(error)}`);
  });
  await writeFile(reportPath, `${JSON.stringify(reportJson(report), null, 2)}\n`).catch((error: Error) => {
    throw new Failure(`report is "${reportPath}", which cannot be written: ${error.message}`);
  });
  return reportOf(report, { url: resource.url, reportPath, leastLevel });
}

const sellerCheck = (): Promise<SellerCheck> =>
  import("../../seller-check/src/index.ts").catch((error: Error) => {
    throw new Failure(
      `examine needs the folders packages/escrow, packages/seller-check and packages/verifier next to the action's: ${error.message}`,
    );
  });

/** Omits the URL of the node, which viem adds to the message. */
const reasonOf = (error: unknown): string => {
  const { shortMessage, details } = error as { readonly shortMessage?: string; readonly details?: string };
  if (shortMessage === undefined) return error instanceof Error ? error.message : String(error);
  return details === undefined ? shortMessage : `${shortMessage} ${details}`;
};

interface Held {
  readonly url: string;
  readonly reportPath: string;
  readonly leastLevel: LeastLevel;
}

function reportOf({ level, results, spent, exchanges }: ExamReport, { url, reportPath, leastLevel }: Held): Report {
  const failing = results.filter(({ outcome }) => outcome === "fail");
  const reached = level ?? "none";
  return {
    outputs: { level: reached, report: reportPath, failing: failing.map(({ check }) => check).join(",") },
    summary: [
      `### ${heading(reached)}: ${code(url)}`,
      "",
      "| check | outcome | because |",
      "|---|---|---|",
      ...results.map((result) => `| ${result.check} | ${result.outcome.replace("_", " ")} | ${because(result)} |`),
      "",
      `${exchanges.length} requests, ${formatUsd(spent)} USDC spent.`,
    ].join("\n"),
    failure: isReached(level, leastLevel)
      ? null
      : `The seller's level is ${reached}, but ${leastLevel} is required: ${failing.length > 0 ? failing.map(named).join("; ") : nothingSold(results)}`,
  };
}

const heading = (level: string): string => (level === "none" ? "No level" : `Level ${level}`);

const isReached = (level: ExamReport["level"], least: LeastLevel): boolean =>
  level === "full" || (level === "safe" && least === "safe");

const named = (result: Result): string => `${result.check} (not so: ${untrue(result)[0]})`;

const untrue = ({ findings }: Result): readonly string[] =>
  findings.flatMap(({ statement, holds }) => (holds ? [] : [statement]));

/** If a seller's terms cannot be paid, no check fails, but nothing is sold. */
const nothingSold = (results: readonly Result[]): string =>
  results.find(({ reason }) => reason !== null)?.reason ?? "too little was seen";

const because = (result: Result): string =>
  result.reason !== null
    ? code(result.reason)
    : untrue(result)
        .map((statement) => `not so: ${code(statement)}`)
        .join("<br>");

/** Quotes untrusted text as code that cannot end the code or its table cell. */
const code = (text: string): string => `\`\` ${text.replace(/[`|\r\n]/g, " ")} \`\``;
