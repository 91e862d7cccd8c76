import type { Verify } from "./inputs.ts";
import { checkLog, type LogReport, NOT_COMPARED } from "./log.ts";
import { notVerified, readRecord, recordUrl, type WalletRecord } from "./record.ts";
import type { Report } from "./report.ts";
import { CAPABILITIES, type Capability } from "./vocabulary.ts";

const PAUSE_MS = 15_000;

/**
 * Whether the wallet is verified and has a fresh PASS for each required capability; with a log policy, also that no proof of
 * its certificates is wrong, and that the record leaves out no FAIL that the log has.
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
    summary: `${summaryOf(record, { wallet, url, require })}\n\n${logLine("Public log", logged.listed)}\n\n${logLine("All of the wallet in the log", logged.leftOut)}`,
    failure,
  };
}

const NO_POLICY = "No log-policy says which log and which witnesses to trust.";
const NOT_ASKED: Omit<LogReport, "record"> = {
  listed: { state: "not_checked", reason: NO_POLICY, entries: [] },
  leftOut: { ...NOT_COMPARED, reason: NO_POLICY },
};

function logFailure({ listed, leftOut }: Omit<LogReport, "record">, isRequired: boolean): string | null {
  if (listed.state === "refused") return `A proof of the public log is wrong: ${listed.reason}`;
  if (leftOut.state === "refused") return `The public log is not genuine: ${leftOut.reason}`;
  if (leftOut.state === "hidden") return leftOut.reason;
  if (!isRequired) return null;
  if (listed.state !== "proven") return `The certificates are not shown to be in the public log: ${listed.reason}`;
  return leftOut.state === "incomplete" ? `The public log was not read to its end: ${leftOut.reason}` : null;
}

/** What is quoted of a stranger's answer shows as code, and cannot end it. */
const logLine = (what: string, { state, reason }: { readonly state: string; readonly reason: string }): string =>
  `${what}: **${state.replace("_", " ")}**. \`\` ${reason.replace(/[`\r\n]/g, " ")} \`\``;

/** As the verifier's `unmet` does, which needs a package of its own. */
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
