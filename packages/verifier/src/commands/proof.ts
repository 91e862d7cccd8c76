import { FLAG, readArguments, readSource, withViem } from "./arguments.ts";

const USAGE = `Re-checks the published proof of a failed behavioral test, offline.

  agent-payment-trust-verifier proof <file | URL | -> [--json]

The source is the JSON record of a certificate, like https://trust.example/cert/0123456789abcdef?format=json.
Requires the viem package: npm install viem.`;

/** The subcommand `proof`. @throws InputError for wrong usage, or for a source that cannot be read or has no proof */
export async function checkProof(args: readonly string[]): Promise<0 | 1> {
  const { source, json } = readArguments(args, USAGE, { json: FLAG });
  const text = await readSource(source);
  const report = await withViem(async () => (await import("../fail-proof.ts")).checkFailProof(text));
  console.log(json ? JSON.stringify(report, null, 2) : render(report));
  return report.valid ? 0 : 1;
}

function render({
  valid,
  checks,
  signer,
  amount,
  payTo,
}: Awaited<ReturnType<typeof import("../fail-proof.ts").checkFailProof>>) {
  return [
    valid ? `valid: ${signer} signed ${amount} atomic USDC to ${payTo}` : "NOT VALID",
    ...checks.map(({ statement, holds }) => `  ${holds ? "yes" : "NO "}  ${statement}`),
  ].join("\n");
}
