import { fetchText } from "../fetch-text.ts";
import { NETWORKS } from "../networks.ts";
import { checkSigned, type Expected, type SignedReport } from "../offer-receipt/check.ts";
import { documentUrlFor } from "../offer-receipt/speaker.ts";
import { type Kind, readStatement, type Statement } from "../offer-receipt/statement.ts";
import { InputError, parseInput, quote } from "../refusal.ts";
import { isObject, type Json, type JsonObject, parseUnsignedJson } from "../strict-json.ts";
import { FLAG, readArguments, readSource, TEXT, withViem } from "./arguments.ts";

const USAGE = `Checks what a seller signed with the x402 extension offer-receipt.

  agent-payment-trust-verifier offer <file | URL | -> [--did <file | URL> | --key <file | URL>] [--at <unix seconds>] [--json]
  agent-payment-trust-verifier receipt <file | URL | -> [--offer <file | URL>] [--pay-to <address>] [--did … | --key …] [--json]

The source is the value of a PAYMENT-REQUIRED or PAYMENT-RESPONSE header, in base64 or decoded, the body of a 402 that has
the offers, or one signed offer or receipt. --did is the seller's DID document, for signatures in the format jws; without
it, the document is fetched from the resource's host, at the address that the kid's did:web names. --key is a public JWK that
you know to be the seller's: a JWS is checked with it, whatever its kid names. For an EIP-712 receipt, --offer or --pay-to
names the payee, who must have signed it. --offer is checked too: its signature, and that it is for the receipt's resource and
network. EIP-712 and ES256K require the viem package: npm install viem.

Exit codes: 0 valid; 1 not valid; 2 usage error or unreadable input.`;

const KEYS = { did: TEXT, key: TEXT } as const;

/** The subcommand `offer`. @throws InputError for wrong usage, or for a source that cannot be read or has no offer */
export async function checkOffer(args: readonly string[]): Promise<0 | 1> {
  const { source, did, key, json, ...given } = readArguments(args, USAGE, { ...KEYS, at: TEXT, json: FLAG });
  const at = secondsOf(given.at);
  const reports = [];
  for (const { signed, members } of offersIn(await read(source)))
    reports.push(await check("offer", signed, { did, key, at, members }));
  return report(reports, json);
}

/**
 * The subcommand `receipt`. @throws InputError for wrong usage, or for a source that cannot be read or has no receipt
 */
export async function checkReceipt(args: readonly string[]): Promise<0 | 1> {
  const options = { ...KEYS, offer: TEXT, "pay-to": TEXT, json: FLAG } as const;
  const { source, did, key, offer, json, ...given } = readArguments(args, USAGE, options);
  const named = accountOf(given["pay-to"]);
  const found = receiptIn(await read(source));
  const offers = offer === undefined ? [] : offersFor(found, offersIn(await read(offer)));
  // An offer counts by its signature alone; it may have expired after it was paid.
  const pairs = offers.length === 0 ? [null] : offers;
  const checked = [];
  for (const one of pairs) {
    const offered = one && (await check("offer", one.signed, { did, key, at: 0, members: one.members }));
    const payTo = named ?? (offered === null ? undefined : String(offered.payload.payTo));
    const agreed = offered && { resourceUrl: offered.payload.resourceUrl, network: offered.payload.network };
    const receipt = await check("receipt", found.signed, {
      did,
      key,
      at: 0,
      payTo,
      members: { ...found.members, ...agreed },
    });
    checked.push(offered === null ? [receipt] : [receipt, offered]);
  }
  const [first = []] = checked;
  return report(checked.find((reports) => reports.every(({ valid }) => valid)) ?? first, json);
}

/** The offers that a receipt can be for: the ones on its network, or all if none is. */
function offersFor({ signed }: SignedPart, offers: readonly SignedPart[]): readonly SignedPart[] {
  const { network } = readStatement("receipt", signed).payload;
  const same = offers.filter((offer) => readStatement("offer", offer.signed).payload.network === network);
  return same.length > 0 ? same : offers;
}

function secondsOf(at = String(Math.floor(Date.now() / 1000))): number {
  if (!/^\d{1,12}$/.test(at)) throw new InputError(`--at ${quote(at)} is not a time in Unix seconds`);
  return Number(at);
}

function accountOf(payTo: string | undefined): string | undefined {
  if (payTo === undefined || /^0x[0-9a-f]{40}$/i.test(payTo)) return payTo;
  throw new InputError(`--pay-to ${quote(payTo)} is not an address`);
}

/** Reads JSON, or JSON in base64 as in a header. */
async function read(source: string): Promise<JsonObject> {
  const text = new TextDecoder().decode(await readSource(source)).trim();
  const value = parseInput(
    () => parseUnsignedJson(text.startsWith("{") ? text : Buffer.from(text, "base64")),
    (reason) => `The source is not JSON or a base64 header: ${reason}.`,
  );
  if (isObject(value)) return value;
  throw new InputError(`${quote(source)} is not a JSON object.`);
}

interface SignedPart {
  readonly signed: Json;
  /** Members of the surrounding message that the signed payload must match. */
  readonly members: Readonly<Record<string, Json | undefined>>;
}

const infoOf = ({ extensions }: JsonObject): JsonObject => {
  const extension = isObject(extensions) ? extensions["offer-receipt"] : undefined;
  return isObject(extension) && isObject(extension.info) ? extension.info : {};
};

/** The offers of a 402, each with the terms that it is for; or a single offer. */
function offersIn(value: JsonObject): readonly SignedPart[] {
  if ("format" in value) return [{ signed: value, members: {} }];
  const { offers } = infoOf(value);
  if (!Array.isArray(offers) || offers.length === 0)
    throw new InputError("No signed offer was found: expected extensions.offer-receipt.info.offers.");
  // The body of a 402 has the offers that do not fit in its PAYMENT-REQUIRED header, without the terms that they are
  // for.
  if (value.x402Version === 1) return offers.map((signed) => ({ signed, members: {} }));
  const accepts = Array.isArray(value.accepts) ? (value.accepts as readonly Json[]) : [];
  const resourceUrl = isObject(value.resource) ? value.resource.url : value.resource;
  return (offers as readonly Json[]).map((signed) => {
    const terms = termsOf(signed, accepts);
    if (!isObject(terms)) throw new InputError("An offer's acceptIndex names no entry of accepts.");
    return { signed, members: { resourceUrl, ...comparable(terms) } };
  });
}

const comparable = ({ scheme, network, asset, payTo, amount }: JsonObject) => ({
  scheme,
  network,
  asset,
  payTo,
  amount,
});

/** The terms of an offer: the entry that it names by index, else the first entry that matches, else the first. */
function termsOf(signed: Json, accepts: readonly Json[]): Json | undefined {
  const { acceptIndex } = isObject(signed) ? signed : {};
  if (acceptIndex !== undefined) return Number.isInteger(acceptIndex) ? accepts[acceptIndex as number] : undefined;
  const { payload } = readStatement("offer", signed);
  const matches = (terms: Json) =>
    isObject(terms) && Object.entries(comparable(terms)).every(([name, value]) => payload[name] === value);
  return accepts.find(matches) ?? accepts[0];
}

/** The receipt of a PAYMENT-RESPONSE, with the response's statements about the payment; or a single receipt. */
function receiptIn(value: JsonObject): SignedPart {
  if ("format" in value) return { signed: value, members: {} };
  const { receipt } = infoOf(value);
  if (receipt === undefined)
    throw new InputError("No signed receipt was found: expected extensions.offer-receipt.info.receipt.");
  const { payer, transaction, network } = value;
  const stated = { payer, network: caip2(network) };
  return { signed: receipt, members: { transaction, ...Object.fromEntries(Object.entries(stated).filter(isGiven)) } };
}

const isGiven = ([, value]: readonly [string, Json | undefined]): boolean => value !== undefined;

/** Version 1 responses name networks by a key, signed payloads by CAIP-2. An unknown key is not compared. */
const CAIP2: ReadonlyMap<Json | undefined, string> = new Map(
  Object.entries(NETWORKS).map(([id, { key }]) => [key, id]),
);

const caip2 = (network: Json | undefined): Json | undefined =>
  typeof network === "string" && !network.includes(":") ? CAIP2.get(network) : network;

interface Wanted extends Omit<Expected, "did" | "key"> {
  readonly did: string | undefined;
  readonly key: string | undefined;
}

async function check(kind: Kind, signed: Json, { did, key, ...wanted }: Wanted): Promise<SignedReport> {
  if (did !== undefined && key !== undefined) throw new InputError("Give either --did or --key, not both.");
  const statement = readStatement(kind, signed);
  const expected =
    key === undefined ? { ...wanted, did: await didDocument(statement, did) } : { ...wanted, key: await readKey(key) };
  return withViem(() => checkSigned(kind, signed, expected));
}

async function readKey(source: string): Promise<Json> {
  const text = await readSource(source);
  return parseInput(
    () => parseUnsignedJson(text),
    (reason) => `The trusted key cannot be read: ${reason}.`,
  );
}

async function didDocument(statement: Statement, named: string | undefined) {
  if (statement.format === "eip712") return undefined;
  if (named !== undefined) return readSource(named);
  return fetchText(documentUrlFor(statement.payload.resourceUrl, statement.kid));
}

function report(reports: readonly SignedReport[], json = false): 0 | 1 {
  console.log(json ? JSON.stringify(reports, null, 2) : reports.map(render).join("\n"));
  return reports.every(({ valid }) => valid) ? 0 : 1;
}

const render = ({ valid, genuine, checks, payload }: SignedReport): string =>
  [
    `${valid ? "valid" : genuine ? "GENUINE, BUT EXPIRED" : "NOT VALID"}: ${quote(payload.resourceUrl)}`,
    ...Object.entries(payload).map(([name, value]) => `  ${name.padEnd(12)} ${quote(value)}`),
    ...checks.map(({ statement, holds }) => `  ${holds ? "yes" : "NO "}  ${statement}`),
  ].join("\n");
