import type { Verify } from "./inputs.ts";
import { checkLog, type LogReport, NOT_COMPARED } from "./log.ts";
import { notVerified, readRecord, recordUrl, type WalletRecord } from "./record.ts";
import type { Report } from "./report.ts";
import { CAPABILITIES, type Capability } from "./vocabulary.ts";

const PAUSE_MS = 15_000;

/**
 * Checks that the wallet is verified and has a fresh PASS for each required capability; with a log policy, also that no
 * proof of its certificates is wrong, and that the record omits no FAIL in the log.
 */
export async function verify({ baseUrl, wallet, require, log }: Verify, pauseMs = PAUSE_MS): Promise<Report> {
  const first = await readRecord(baseUrl, wallet);
  const logged =
    log === null ? { ...NOT_ASKED, record: first } : await checkLog(first, { baseUrl, inputs: log, pauseMs });
  const { record } = logged;
  const url = recordUrl(baseUrl, wallet);
  const missing = require.filter((capability) => !passes(record, capability));
  const failure = !record.verified
    ? notVerified(record, { url, wallet })
    : missing.length > 0
      ? `The wallet ${wallet} has no fresh PASS for ${missing.join(", ")}: ${url}`
      : logFailure(logged, log?.isRequired === true);
  return {
    outputs: {
      verified: String(record.verified),
      "record-url": url,
      log: logged.listed.state,
      "log-wallet": logged.leftOut.state,
    },
    summary: `${summaryOf(record, { wallet, url, require })}\n\n${logLine("Public log", logged.listed)}\n\n${logLine("The wallet's entries in the log", logged.leftOut)}`,
    failure,
  };
}

const NO_POLICY = "No log-policy names the log and witnesses to trust.";
const NOT_ASKED: Omit<LogReport, "record"> = {
  listed: { state: "not_checked", reason: NO_POLICY, entries: [] },
  leftOut: { ...NOT_COMPARED, reason: NO_POLICY },
};

function logFailure({ listed, leftOut }: Omit<LogReport, "record">, isRequired: boolean): string | null {
  if (listed.state === "refused") return `A proof of the public log is wrong: ${listed.reason}`;
  if (leftOut.state === "refused") return `The public log is not genuine: ${leftOut.reason}`;
  if (leftOut.state === "hidden") return leftOut.reason;
  if (!isRequired) return null;
  if (listed.state !== "proven") return `The certificates are not proven to be in the public log: ${listed.reason}`;
  return leftOut.state === "incomplete" ? `The public log was not read to its end: ${leftOut.reason}` : null;
}

/** Quotes untrusted text as code that cannot end the code. */
const logLine = (what: string, { state, reason }: { readonly state: string; readonly reason: string }): string =>
  `${what}: **${state.replace("_", " ")}**. \`\` ${reason.replace(/[`\r\n]/g, " ")} \`\``;

/** Same rule as the verifier's `unmet`, which would require its package. */
export const passes = ({ capabilities }: Pick<WalletRecord, "capabilities">, capability: Capability): boolean =>
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
