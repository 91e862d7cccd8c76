import { parseArgs } from "node:util";
import { isTime } from "../freshness.ts";
import { keySetUrl, parseIssuer } from "../issuer.ts";
import { parseKeySet } from "../key-set.ts";
import { InputError, quote, Refusal } from "../refusal.ts";
import { checkStatement, type StatementReport } from "../settlement/check-statement.ts";
import { isObject, type JsonObject, parseUnsignedJson } from "../strict-json.ts";
import { readSource } from "./source.ts";

const USAGE = `Checks a signed statement of what became of a USDC authorization (EIP-3009).

  agent-payment-trust-verifier settlement <file | URL | -> (--issuer <origin | did:web:…> | --jwks <file | URL>)
    [--authorization <file | URL>] [--at <time>] [--json]

--issuer names who must have signed it; its keys are fetched from there unless --jwks pins them. --authorization is a
JSON object with from, to, value, validAfter, validBefore and nonce: the statement must be about exactly this one.

Exit codes: 0 valid; 1 not valid; 2 usage error or unreadable input.`;

/** The sub-command `settlement`. @throws InputError for wrong usage, or for a source that cannot be read */
export async function checkSettlement(args: readonly string[]): Promise<0 | 1> {
  const { values, positionals } = parse(args);
  const [source, ...more] = positionals;
  const { issuer: named, jwks, authorization, at, json = false } = values;
  if (source === undefined || more.length > 0 || (named === undefined && jwks === undefined))
    throw new InputError(USAGE);
  if (at !== undefined && !isTime(at))
    throw new InputError(`--at ${quote(at)} is not a UTC time like 2026-11-21T09:30:00Z`);
  const issuer = named === undefined ? undefined : parseIssuer(named);
  const keysFrom = jwks ?? (issuer === undefined ? "" : keySetUrl(issuer));
  const keys = await parseKeySet(new TextDecoder().decode(await readSource(keysFrom)));
  const expected = authorization === undefined ? undefined : await readObject(authorization);
  const report = await checkStatement(await readSource(source), {
    keys,
    issuer: issuer?.did,
    authorization: expected,
    at: at === undefined ? undefined : new Date(at),
  });
  console.log(json ? JSON.stringify(report, null, 2) : render(report));
  return report.valid ? 0 : 1;
}

function parse(args: readonly string[]) {
  const text = { type: "string" } as const;
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { issuer: text, jwks: text, authorization: text, at: text, json: { type: "boolean" } },
    });
  } catch (error) {
    throw new InputError(`${(error as Error).message}\n\n${USAGE}`);
  }
}

async function readObject(source: string): Promise<JsonObject> {
  try {
    const value = parseUnsignedJson(await readSource(source));
    if (isObject(value)) return value;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
  throw new InputError(`${quote(source)} is not a JSON object.`);
}

function render({ valid, signature, checks, document }: StatementReport): string {
  const settlement = isObject(document?.settlement) ? document.settlement : {};
  const rests = document?.conditional_on ?? null;
  const signed = signature.valid
    ? `signed by ${signature.issuer} with key ${signature.kid}, on ${signature.created}`
    : `not signed (${signature.code}): ${signature.reason}`;
  return [
    valid ? `valid: ${quote(settlement.status)}${settlement.final === true ? ", for good" : ""}` : "NOT VALID",
    `  ${signed}`,
    ...checks.map(({ statement, holds }) => `  ${holds ? "yes" : "NO "}  ${statement}`),
    ...(rests === null ? [] : [`  rests on ${quote(rests)}: the payer's signature was not shown`]),
  ].join("\n");
}
