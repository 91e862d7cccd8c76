import { parseArgs } from "node:util";
import { isTime } from "../freshness.ts";
import { type Issuer, keySetUrl, parseIssuer } from "../issuer.ts";
import { parseKeySet } from "../key-set.ts";
import { InputError, quote } from "../refusal.ts";
import { type Expectation, type Report, verifyDocument } from "../verify-document.ts";
import { isUrl, readSource } from "./source.ts";

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

Exit codes: 0 valid and fresh; 1 not valid or not fresh; 2 usage error or unreadable input.`;

/** Whose keys were trusted, and why: the part of the answer that no signature can give. */
interface Trust {
  readonly expected: Expectation;
  readonly keysFrom: string;
  readonly because: string;
}

interface Options {
  readonly source: string;
  readonly issuer: string | undefined;
  readonly jwks: string | undefined;
  readonly at: Date | undefined;
  readonly json: boolean;
}

/** The sub-command `document`. @throws InputError for wrong usage, or for a file or address that cannot be read */
export async function checkDocument(args: readonly string[]): Promise<0 | 1> {
  const options = readOptions(args);
  const text = await readSource(options.source);
  const { expected, keysFrom, because } = await trust(options);
  const report = await verifyDocument(text, expected);
  const trusted = { issuer: expected.issuer ?? null, keys: keysFrom, because };
  const { document: _, ...result } = report;
  console.log(options.json ? JSON.stringify({ ...result, trusted }, null, 2) : render(report, trusted));
  return report.valid ? 0 : 1;
}

function readOptions(args: readonly string[]): Options {
  const { values, positionals } = parse(args);
  const [source] = positionals;
  if (source === undefined || positionals.length > 1)
    throw new InputError(`Expected one file, URL, or - for standard input; got ${positionals.length}.\n\n${USAGE}`);
  const { at, issuer, jwks, json = false } = values;
  if (at !== undefined && !isTime(at))
    throw new InputError(`--at ${quote(at)} is not a UTC time like 2026-11-21T09:30:00Z`);
  return { source, issuer, jwks, json, at: at === undefined ? undefined : new Date(at) };
}

function parse(args: readonly string[]) {
  const text = { type: "string" } as const;
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { issuer: text, jwks: text, at: text, json: { type: "boolean" } },
    });
  } catch (error) {
    throw new InputError(`${(error as Error).message}\n\n${USAGE}`);
  }
}

async function trust({ source, issuer: named, jwks, at }: Options): Promise<Trust> {
  const issuer = named === undefined ? undefined : parseIssuer(named);
  if (jwks !== undefined) {
    const keys = await parseKeySet(await readText(jwks));
    return { expected: { keys, issuer: issuer?.did, at }, keysFrom: jwks, because: "--jwks names these keys" };
  }
  if (issuer !== undefined) return fetched(issuer, "--issuer names this issuer", at);
  if (isUrl(source)) return fetched(parseIssuer(new URL(source).origin), "the document was read from this origin", at);
  throw new InputError(
    `Whose document should this be? A document that names its own issuer proves nothing; add --issuer or --jwks.\n\n${USAGE}`,
  );
}

async function fetched(issuer: Issuer, because: string, at: Date | undefined): Promise<Trust> {
  const url = keySetUrl(issuer);
  return { expected: { keys: await parseKeySet(await readText(url)), issuer: issuer.did, at }, keysFrom: url, because };
}

const readText = async (source: string): Promise<string> => new TextDecoder().decode(await readSource(source));

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
