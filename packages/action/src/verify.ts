import { CAPABILITIES, type Capability, type Verify } from "./inputs.ts";
import { readRecord, recordUrl, type WalletRecord } from "./record.ts";
import type { Report } from "./report.ts";

/** Whether the wallet is verified and has a fresh PASS for each required capability. */
export async function verify({ baseUrl, wallet, require }: Verify): Promise<Report> {
  const record = await readRecord(baseUrl, wallet);
  const url = recordUrl(baseUrl, wallet);
  const missing = require.filter((capability) => !passes(record, capability));
  const failure = !record.verified
    ? `The wallet ${wallet} is not verified: ${url}`
    : missing.length > 0
      ? `The wallet ${wallet} has no fresh PASS for ${missing.join(", ")}: ${url}`
      : null;
  return {
    outputs: { verified: String(record.verified), "record-url": url },
    summary: summaryOf(record, { wallet, url, require }),
    failure,
  };
}

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
