import { type Report, verifyDocument } from "../verify-document.ts";
import { readArguments } from "./arguments.ts";
import { readSource } from "./source.ts";
import { readTrust, TRUST_TEXTS } from "./trust.ts";

export const USAGE = `Checks a signed credential or verdict of an Agent Payment Trust Service.

  agent-payment-trust-verifier [document] <file | URL | -> [options]

  --issuer <origin | did:web:…>  the expected signer, like https://trust.example; its keys are fetched from there
  --jwks <file | URL>            the trusted keys; nothing is fetched from the issuer
  --at <time>                    judge freshness as of this time, like 2026-11-21T09:30:00Z, instead of now
  --json                         print the report as JSON

A document names its own issuer, and anyone can sign as themselves, so a signature proves something only about an issuer
you expect. Give --issuer or --jwks, except for an https document, which must come from its own origin.

  agent-payment-trust-verifier proof <file | URL | ->        re-checks the published proof of a failed behavioral test
  agent-payment-trust-verifier score <file | URL | ->        recomputes a risk score from its facts
  agent-payment-trust-verifier conditions <file | URL | ->   computes the conditions_sha256 of a delivery claim
  agent-payment-trust-verifier verdict <file | URL | ->      decides a verdict on an offer's breach again
  agent-payment-trust-verifier offer <file | URL | ->        checks the signed offers of an x402 402
  agent-payment-trust-verifier receipt <file | URL | ->      checks the signed receipt of an x402 payment
  agent-payment-trust-verifier settlement <file | URL | ->   checks a signed statement of what became of a payment
  agent-payment-trust-verifier log <file | URL | ->          checks that a record is in the public log, or follows the log

Exit codes: 0 valid and fresh; 1 not valid or not fresh; 2 usage error or unreadable input.`;

/** The sub-command `document`. @throws InputError for wrong usage, or for a file or address that cannot be read */
export async function checkDocument(args: readonly string[]): Promise<0 | 1> {
  const options = readArguments(args, { usage: USAGE, texts: TRUST_TEXTS, flags: ["json"] });
  const text = await readSource(options.source);
  const { expected, keysFrom, because } = await readTrust(options, USAGE);
  const report = await verifyDocument(text, expected);
  const trusted = { issuer: expected.issuer ?? null, keys: keysFrom, because };
  const { document: _, ...result } = report;
  console.log(options.json ? JSON.stringify({ ...result, trusted }, null, 2) : render(report, trusted));
  return report.valid ? 0 : 1;
}

function render({ valid, signature, freshness }: Report, trusted: { readonly keys: string; readonly because: string }) {
  const signed = signature.valid
    ? `valid, by ${signature.issuer} with key ${signature.kid}, on ${signature.created}`
    : `not valid (${signature.code}): ${signature.reason}`;
  return [
    valid ? "valid" : "NOT VALID",
    `  signature  ${signed}`,
    `  freshness  ${describe(freshness)}`,
    `  trusted    ${trusted.keys}: ${trusted.because}`,
  ].join("\n");
}

function describe(freshness: Report["freshness"]): string {
  switch (freshness.state) {
    case "unknown":
      return "unknown: without a valid signature, nothing in the document can be trusted";
    case "not_yet_valid":
      return `not valid before ${freshness.from}`;
    case "no_expiry":
      return `has no expiry; it states what was known on ${freshness.from}`;
    case "current":
      return `current until ${freshness.until}`;
    case "expired":
      return `expired on ${freshness.until}`;
    default:
      return freshness satisfies never;
  }
}
