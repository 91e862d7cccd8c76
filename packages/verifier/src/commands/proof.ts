import { InputError } from "../refusal.ts";
import { readSource } from "./source.ts";

const USAGE = `Re-checks the published proof of a failed behavioral test, offline.

  agent-payment-trust-verifier proof <file | URL | -> [--json]

The source is the JSON record of a certificate, like https://trust.example/cert/0123456789abcdef?format=json.
Requires the viem package: npm install viem.`;

/** The sub-command `proof`. @throws InputError for wrong usage, or for a source that cannot be read or has no proof */
export async function checkProof(args: readonly string[]): Promise<0 | 1> {
  const json = args.includes("--json");
  const [source, ...more] = args.filter((arg) => arg !== "--json");
  if (source === undefined || more.length > 0 || (source.startsWith("-") && source !== "-"))
    throw new InputError(USAGE);
  const { checkFailProof } = await load();
  const report = await checkFailProof(await readSource(source));
  console.log(json ? JSON.stringify(report, null, 2) : render(report));
  return report.valid ? 0 : 1;
}

/** viem does the hashing and recovering; those who only check signed documents need not install it. */
async function load(): Promise<typeof import("../fail-proof.ts")> {
  try {
    return await import("../fail-proof.ts");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new InputError("This check requires the viem package: npm install viem.");
  }
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
