import { npxCommand, VERIFIER } from "../site/packages/published.ts";

const verifier = (baseUrl: string): string => npxCommand(baseUrl, VERIFIER);

/** Fetches a certificate with its proof, and checks both offline. */
export const checkCommands = (
  baseUrl: string,
): string => `curl -s '${baseUrl}/cert/0123456789abcdef?format=json' > record.json
curl -s '${baseUrl}/cert/0123456789abcdef.tlog-proof' > record.tlog-proof
${verifier(baseUrl)} \\
  log record.json --proof record.tlog-proof --policy policy.txt --issuer ${baseUrl}`;

/** Follows the log and checks every entry. */
export const followCommands = (baseUrl: string, logUrl: string): string =>
  `${verifier(baseUrl)} \\
  log monitor ${logUrl} --policy policy.txt`;
