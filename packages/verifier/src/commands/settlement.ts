import { claimsOf } from "../claims.ts";
import { InputError, parseInput, quote } from "../refusal.ts";
import { checkStatement, type StatementReport } from "../settlement/check-statement.ts";
import { isObject, type JsonObject, parseUnsignedJson } from "../strict-json.ts";
import { FLAG, readArguments, readSource, TEXT, withViem } from "./arguments.ts";
import { readTrust, TRUST_OPTIONS } from "./trust.ts";

const USAGE = `Checks a signed statement of the status of a USDC authorization (EIP-3009).

  agent-payment-trust-verifier settlement <file | URL | -> [--issuer <origin | did:web:…>] [--jwks <file | URL>]
    [--authorization <file | URL>] [--signature <0x…>] [--at <time>] [--json]

--issuer names the expected signer; its keys are fetched from there unless --jwks pins them. Only a statement that is read
from its issuer's own https address needs neither. --authorization is a JSON object with from, to, value, validAfter,
validBefore and nonce: the statement must be about exactly this one. --signature is the payer's signature of it. To check
--signature, or a statement whose issuer saw the signature, install the viem package: npm install viem.

Exit codes: 0 valid; 1 not valid; 2 usage error or unreadable input.`;

/** The subcommand `settlement`. @throws InputError for wrong usage, or for a source that cannot be read */
export async function checkSettlement(args: readonly string[]): Promise<0 | 1> {
  const {
    authorization,
    signature: shown,
    json,
    ...given
  } = readArguments(args, USAGE, { ...TRUST_OPTIONS, authorization: TEXT, signature: TEXT, json: FLAG });
  const about = authorization === undefined ? undefined : await readObject(authorization);
  const text = await readSource(given.source);
  const { expected } = await readTrust(given, USAGE);
  const report = await withViem(() => checkStatement(text, { ...expected, authorization: about, signature: shown }));
  console.log(json ? JSON.stringify(report, null, 2) : render(report));
  return report.valid ? 0 : 1;
}

async function readObject(source: string): Promise<JsonObject> {
  const text = await readSource(source);
  const isNone = `${quote(source)} is not a JSON object.`;
  const value = parseInput(
    () => parseUnsignedJson(text),
    () => isNone,
  );
  if (isObject(value)) return value;
  throw new InputError(isNone);
}

function render({ valid, signature, checks, document }: StatementReport): string {
  const settlement = isObject(document?.settlement) ? document.settlement : {};
  const rests = document?.conditional_on ?? null;
  const signed = signature.valid
    ? `signed by ${signature.issuer} with key ${signature.kid}, on ${signature.created}`
    : `not signed (${signature.code}): ${signature.reason}`;
  return [
    valid ? `valid: ${quote(settlement.status)}${settlement.final === true ? ", final" : ""}` : "NOT VALID",
    ...(document === null ? [] : [`  about ${claimsOf(document).about}`]),
    `  ${signed}`,
    ...checks.map(({ statement, holds }) => `  ${holds ? "yes" : "NO "}  ${statement}`),
    ...(rests === null ? [] : [`  conditional on ${quote(rests)}: the payer's signature was not shown`]),
  ].join("\n");
}
