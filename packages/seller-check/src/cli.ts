#!/usr/bin/env node
import { plain } from "./exam/plain.ts";
import { holdExam } from "./hold-exam.ts";
import { readOrder, UsageError } from "./order.ts";
import { reportJsonText, reportText } from "./report.ts";

async function main(args: readonly string[]): Promise<0 | 1> {
  const { json, ...order } = readOrder(args, process.env);
  const report = await holdExam(order);
  console.log(json ? reportJsonText(report) : reportText(report));
  return report.level === "full" ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2)).catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  console.error(
    error instanceof UsageError ? message : plain(`The exam could not be held, and nothing was judged: ${message}`),
  );
  return 2;
});
