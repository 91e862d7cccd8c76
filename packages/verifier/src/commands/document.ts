import { type Claims, claimsOf } from "../claims.ts";
import { InputError, quote } from "../refusal.ts";
import { parseRequirements, REQUIREMENTS, type Required, shortcomings } from "../requirement.ts";
import { type Report, verifyDocument } from "../verify-document.ts";
import { FLAG, readArguments, readSource, TEXT } from "./arguments.ts";
import { readTrust, TRUST_OPTIONS } from "./trust.ts";

export const USAGE = `Checks a signed credential or verdict of an Agent Payment Trust Service.

  agent-payment-trust-verifier [document] <file | URL | -> [options]

  --issuer <origin | did:web:…>  the expected signer, like https://trust.example; its keys are fetched from there
  --jwks <file | URL>            the trusted keys; nothing is fetched from the issuer
  --at <time>                    judge freshness as of this time, like 2026-11-21T09:30:00Z, instead of now
  --require <names>              what the credential must state, comma-separated:
                                 ${REQUIREMENTS.join(", ")}
  --wallet <0x…>                 the wallet that the document must be about
  --json                         print the report as JSON

A document names its own issuer, and anyone can sign as themselves, so a signature proves something only about an issuer
you expect. Give --issuer or --jwks, except for an https document, which must come from its own origin.
A signature does not make a wallet verified: the first line of the output shows whether it is, and --require checks it.

  agent-payment-trust-verifier proof <file | URL | ->        re-checks the published proof of a failed behavioral test
  agent-payment-trust-verifier score <file | URL | ->        recomputes a risk score from its facts
  agent-payment-trust-verifier conditions <file | URL | ->   computes the conditions_sha256 of a delivery claim
  agent-payment-trust-verifier verdict <file | URL | ->      decides a verdict on an offer's breach again
  agent-payment-trust-verifier offer <file | URL | ->        checks the signed offers of an x402 402
  agent-payment-trust-verifier receipt <file | URL | ->      checks the signed receipt of an x402 payment
  agent-payment-trust-verifier settlement <file | URL | ->   checks a signed statement of a payment's status
  agent-payment-trust-verifier log <file | URL | ->          checks that a record is in the public log, or follows the log

Exit codes: 0 valid, fresh, and as required; 1 not valid or not fresh; 2 usage error or unreadable input; 3 valid and fresh,
but not about the required wallet or without what is required.`;

/** The subcommand `document`. @throws InputError for wrong usage, or for a file or address that cannot be read */
export async function checkDocument(args: readonly string[]): Promise<0 | 1 | 3> {
  const options = readArguments(args, USAGE, {
    ...TRUST_OPTIONS,
    wallet: TEXT,
    json: FLAG,
    require: { ...TEXT, multiple: true },
  });
  const names = (options.require ?? []).flatMap(parseRequirements);
  const wallet = walletOf(options.wallet);
  const text = await readSource(options.source);
  const { expected, keysFrom, because } = await readTrust(options, USAGE);
  const report = await verifyDocument(text, expected);
  const trusted = { issuer: expected.issuer ?? null, keys: keysFrom, because };
  const notes = tell(report, { names, wallet, at: expected.at ?? new Date() });
  const { document: _, ...result } = report;
  console.log(
    options.json ? JSON.stringify({ ...result, ...notes, trusted }, null, 2) : render(report, { ...notes, trusted }),
  );
  if (!report.valid) return 1;
  return notes.shortcomings.length === 0 ? 0 : 3;
}

function walletOf(text: string | undefined): string | undefined {
  if (text === undefined || /^0x[0-9a-f]{40}$/i.test(text)) return text;
  throw new InputError(`--wallet ${quote(text)} is not an address: expected 0x and 40 hex digits.`);
}

interface Told {
  /** Null unless the signature is valid. */
  readonly claims: Claims | null;
  /** The unmet requirements; empty if it meets all of them. */
  readonly shortcomings: readonly string[];
}

function tell({ document }: Report, required: Required): Told {
  if (document === null) return { claims: null, shortcomings: [] };
  const claims = claimsOf(document);
  return { claims, shortcomings: shortcomings(document, claims, required) };
}

interface Shown extends Told {
  readonly trusted: { readonly keys: string; readonly because: string };
}

function render({ valid, signature, freshness }: Report, { claims, shortcomings: lacking, trusted }: Shown) {
  const signed = signature.valid
    ? `valid, by ${signature.issuer} with key ${signature.kid}, on ${signature.created}`
    : `not valid (${signature.code}): ${signature.reason}`;
  const summary = claims?.summary ?? "";
  const isCredential = claims?.kind === "wallet" || claims?.kind === "seller";
  return [
    valid ? `valid${isCredential ? `, ${summary}` : ""}` : "NOT VALID",
    ...lacking.map((what) => `NOT AS REQUIRED: ${what}`),
    `  signature  ${signed}`,
    `  freshness  ${describe(freshness)}`,
    ...(claims === null ? [] : [`  about      ${claims.about}`]),
    ...(summary === "" || (valid && isCredential) ? [] : [`  ${valid ? "result " : "claimed"}    ${summary}`]),
    ...(claims?.details ?? []).map((detail) => `             ${detail}`),
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
