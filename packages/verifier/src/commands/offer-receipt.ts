import { fetchText } from "../fetch-text.ts";
import { checkSigned, type Expected, type SignedReport } from "../offer-receipt/check.ts";
import { type Kind, readStatement, type Statement } from "../offer-receipt/statement.ts";
import { InputError, quote, Refusal } from "../refusal.ts";
import { isObject, type Json, type JsonObject, parseUnsignedJson } from "../strict-json.ts";
import { readArguments } from "./arguments.ts";
import { readSource } from "./source.ts";
import { withViem } from "./with-viem.ts";

const USAGE = `Checks what a seller signed with the x402 extension offer-receipt.

  agent-payment-trust-verifier offer <file | URL | -> [--did <file | URL>] [--at <unix seconds>] [--json]
  agent-payment-trust-verifier receipt <file | URL | -> [--offer <file | URL>] [--pay-to <address>] [--did …] [--json]

The source is the value of a PAYMENT-REQUIRED or PAYMENT-RESPONSE header, in base64 or decoded, or one signed offer or
receipt. --did is the seller's DID document, for signatures in the format jws; without it, it is fetched from the host of
the resource. For an EIP-712 receipt, --offer or --pay-to says who was to be paid: the signature must be theirs.
EIP-712 requires the viem package: npm install viem.

Exit codes: 0 valid; 1 not valid; 2 usage error or unreadable input.`;

/** The sub-command `offer`. @throws InputError for wrong usage, or for a source that cannot be read or has no offer */
export async function checkOffer(args: readonly string[]): Promise<0 | 1> {
  const { source, did, json, ...given } = readArguments(args, { usage: USAGE, texts: ["did", "at"], flags: ["json"] });
  const at = secondsOf(given.at);
  const reports = [];
  for (const { signed, members } of offersIn(await read(source)))
    reports.push(await check("offer", signed, { did, at, members }));
  return report(reports, json);
}

/** The sub-command `receipt`. @throws InputError for wrong usage, or for a source that cannot be read or has no receipt */
export async function checkReceipt(args: readonly string[]): Promise<0 | 1> {
  const texts = ["did", "offer", "pay-to"] as const;
  const { source, did, offer, json, ...given } = readArguments(args, { usage: USAGE, texts, flags: ["json"] });
  const [at, named] = [secondsOf(), accountOf(given["pay-to"])];
  const { signed, members } = receiptIn(await read(source));
  const [first] = offer === undefined ? [] : offersIn(await read(offer));
  const offered = first === undefined ? null : readStatement("offer", first.signed).payload;
  const payTo = named ?? (offered === null ? undefined : String(offered.payTo));
  const agreed = offered === null ? {} : { resourceUrl: offered.resourceUrl, network: offered.network };
  return report([await check("receipt", signed, { did, at, payTo, members: { ...members, ...agreed } })], json);
}

function secondsOf(at = String(Math.floor(Date.now() / 1000))): number {
  if (!/^\d{1,12}$/.test(at)) throw new InputError(`--at ${quote(at)} is not a time in Unix seconds`);
  return Number(at);
}

function accountOf(payTo: string | undefined): string | undefined {
  if (payTo === undefined || /^0x[0-9a-f]{40}$/i.test(payTo)) return payTo;
  throw new InputError(`--pay-to ${quote(payTo)} is not an address`);
}

/** JSON, or JSON in base64 as a header carries it. */
async function read(source: string): Promise<JsonObject> {
  const text = new TextDecoder().decode(await readSource(source)).trim();
  const value = parsed(text.startsWith("{") ? text : Buffer.from(text, "base64"));
  if (isObject(value)) return value;
  throw new InputError(`${quote(source)} is not a JSON object.`);
}

function parsed(text: string | Uint8Array): Json {
  try {
    return parseUnsignedJson(text);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new InputError(`The source is neither JSON nor a header in base64: ${error.message}.`);
  }
}

interface Found {
  readonly signed: Json;
  /** What its surroundings say, which it must say too. */
  readonly members: Readonly<Record<string, Json | undefined>>;
}

const infoOf = ({ extensions }: JsonObject): JsonObject => {
  const extension = isObject(extensions) ? extensions["offer-receipt"] : undefined;
  return isObject(extension) && isObject(extension.info) ? extension.info : {};
};

/** The offers of a 402, each with the terms that it is for; or the one offer that the text is. */
function offersIn(value: JsonObject): readonly Found[] {
  if ("format" in value) return [{ signed: value, members: {} }];
  const { offers } = infoOf(value);
  if (!Array.isArray(offers) || offers.length === 0)
    throw new InputError("No signed offer was found: expected extensions.offer-receipt.info.offers.");
  const accepts = Array.isArray(value.accepts) ? (value.accepts as readonly Json[]) : [];
  const resourceUrl = isObject(value.resource) ? value.resource.url : value.resource;
  return (offers as readonly Json[]).map((signed) => {
    const terms = isObject(signed) ? accepts[Number(signed.acceptIndex)] : undefined;
    if (terms === undefined || !isObject(terms))
      throw new InputError("An offer's acceptIndex names no entry of accepts.");
    const { scheme, network, asset, payTo, amount } = terms;
    return { signed, members: { resourceUrl, scheme, network, asset, payTo, amount } };
  });
}

/** The receipt of a PAYMENT-RESPONSE, with what that says of the payment; or the one receipt that the text is. */
function receiptIn(value: JsonObject): Found {
  if ("format" in value) return { signed: value, members: {} };
  const { receipt } = infoOf(value);
  if (receipt === undefined)
    throw new InputError("No signed receipt was found: expected extensions.offer-receipt.info.receipt.");
  const { payer, transaction } = value;
  return { signed: receipt, members: { payer, transaction } };
}

interface Wanted extends Omit<Expected, "did"> {
  readonly did: string | undefined;
}

async function check(kind: Kind, signed: Json, { did, ...wanted }: Wanted): Promise<SignedReport> {
  const statement = readStatement(kind, signed);
  const expected = { ...wanted, did: await didDocument(statement, did) };
  return withViem(() => checkSigned(kind, signed, expected));
}

async function didDocument({ format, payload }: Statement, named: string | undefined) {
  if (format === "eip712") return undefined;
  if (named !== undefined) return readSource(named);
  return fetchText(`${new URL(payload.resourceUrl).origin}/.well-known/did.json`);
}

function report(reports: readonly SignedReport[], json: boolean): 0 | 1 {
  console.log(json ? JSON.stringify(reports, null, 2) : reports.map(render).join("\n"));
  return reports.every(({ valid }) => valid) ? 0 : 1;
}

const render = ({ valid, checks, payload }: SignedReport): string =>
  [
    `${valid ? "valid" : "NOT VALID"}: ${quote(payload.resourceUrl)}`,
    ...Object.entries(payload).map(([name, value]) => `  ${name.padEnd(12)} ${quote(value)}`),
    ...checks.map(({ statement, holds }) => `  ${holds ? "yes" : "NO "}  ${statement}`),
  ].join("\n");
