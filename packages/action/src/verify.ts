import { CAPABILITIES, type Capability, type Verify } from "./inputs.ts";
import { checkLog, type LogReport } from "./log.ts";
import { readRecord, recordUrl, type WalletRecord } from "./record.ts";
import type { Report } from "./report.ts";

/**
 * Whether the wallet is verified and has a fresh PASS for each required capability; with a log policy, also that no proof of
 * its certificates is wrong.
 */
export async function verify({ baseUrl, wallet, require, log }: Verify): Promise<Report> {
  const record = await readRecord(baseUrl, wallet);
  const logged = log === null ? NOT_ASKED : await checkLog(record, baseUrl, log);
  const url = recordUrl(baseUrl, wallet);
  const missing = require.filter((capability) => !passes(record, capability));
  const failure = !record.verified
    ? `The wallet ${wallet} is not verified: ${url}`
    : missing.length > 0
      ? `The wallet ${wallet} has no fresh PASS for ${missing.join(", ")}: ${url}`
      : logFailure(logged, log?.isRequired === true);
  return {
    outputs: { verified: String(record.verified), "record-url": url, log: logged.state },
    summary: `${summaryOf(record, { wallet, url, require })}\n\n${logLine(logged)}`,
    failure,
  };
}

const NOT_ASKED: LogReport = {
  state: "not_checked",
  reason: "No log-policy says which log and which witnesses to trust.",
  entries: [],
};

function logFailure({ state, reason }: LogReport, isRequired: boolean): string | null {
  if (state === "refused") return `A proof of the public log is wrong: ${reason}`;
  return isRequired && state !== "proven" ? `The certificates are not shown to be in the public log: ${reason}` : null;
}

/** What is quoted of a stranger's answer shows as code, and cannot end it. */
const logLine = ({ state, reason }: LogReport): string =>
  `Public log: **${state.replace("_", " ")}**. \`\` ${reason.replace(/[`\r\n]/g, " ")} \`\``;

const passes = ({ capabilities }: WalletRecord, capability: Capability): boolean =>
  capabilities[capability]?.result === "pass" && capabilities[capability].fresh;

function summaryOf(
  record: WalletRecord,
  { wallet, url, require }: { readonly wallet: string; readonly url: string; readonly require: readonly Capability[] },
): string {
  const rows = CAPABILITIES.map((capability) => {
    const { result, fresh } = record.capabilities[capability] ?? { result: null, fresh: false };
    const state = result === "pass" || result === "fail" ? `${result}${fresh ? "" : ", expired"}` : "not tested";
    return `| ${capability} | ${state} | ${require.includes(capability) ? "yes" : ""} |`;
  });
  return [
    `### ${record.verified ? "Verified" : "Not verified"}: \`${wallet}\``,
    "",
    "| capability | result | required |",
    "|---|---|---|",
    ...rows,
    "",
    `[The public record](${url})`,
  ].join("\n");
}
