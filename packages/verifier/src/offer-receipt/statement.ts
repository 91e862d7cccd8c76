import { base64url } from "jose";
import { InputError, quote, Refusal } from "../refusal.ts";
import { isObject, type Json, type JsonObject, parseStrictJson } from "../strict-json.ts";

export type Kind = "offer" | "receipt";

/** Every member of a payload is a string or a whole number (x402, extension `offer-receipt`, version 1). */
const MEMBERS = {
  offer: {
    version: "number",
    resourceUrl: "string",
    scheme: "string",
    network: "string",
    asset: "string",
    payTo: "string",
    amount: "string",
    validUntil: "number",
  },
  receipt: {
    version: "number",
    network: "string",
    resourceUrl: "string",
    payer: "string",
    issuedAt: "number",
    transaction: "string",
  },
} as const;

/** The signed payload: an offer, or a receipt, whose `transaction` is empty if it names none. */
export type Payload = Readonly<Record<string, string | number>> & { readonly resourceUrl: string };

/** A parsed offer or receipt. Nothing in it has been verified. */
export type Statement =
  | {
      readonly format: "jws";
      readonly kind: Kind;
      readonly jws: string;
      readonly kid: string;
      readonly payload: Payload;
    }
  | { readonly format: "eip712"; readonly kind: Kind; readonly signature: string; readonly payload: Payload };

/**
 * Reads `{format: "jws", signature}` or `{format: "eip712", payload, signature}`.
 * @throws InputError if it has another form, or its payload is not an offer or a receipt
 */
export function readStatement(kind: Kind, signed: Json): Statement {
  if (!isObject(signed)) throw new InputError(`The ${kind} is not a JSON object.`);
  const { format, signature, payload } = signed;
  if (typeof signature !== "string") throw new InputError(`The ${kind} has no signature.`);
  if (format === "eip712") return { format, kind, signature, payload: readPayload(kind, payload) };
  if (format !== "jws") throw new InputError(`The ${kind} has the format ${quote(format)}; expected jws or eip712.`);
  const [header = "", text = "", ...more] = signature.split(".");
  if (more.length !== 1) throw new InputError(`The ${kind}'s JWS is not three parts separated by dots.`);
  const { kid, crit } = decoded(kind, header);
  if (crit !== undefined) throw new InputError(`The ${kind}'s JWS requires extensions: crit is ${quote(crit)}.`);
  if (typeof kid !== "string") throw new InputError(`The ${kind}'s JWS names no key: its header has no kid.`);
  return { format, kind, jws: signature, kid, payload: readPayload(kind, decoded(kind, text)) };
}

/** Each part in base64url, without padding or line breaks (RFC 7515, section 2). */
const COMPACT_JWS = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/**
 * Reads a statement from an untrusted party: no unsigned value in it may be taken for a signed one, and no URL for
 * another site's.
 * @throws InputError also for a JWS with an extra payload or with characters outside base64url, and for a resource
 * whose URL contains a user name, as in `https://trust.example@shop.example`
 */
export function readSubmitted(kind: Kind, signed: Json): Statement {
  const statement = readStatement(kind, signed);
  if (statement.format === "jws" && isObject(signed) && signed.payload !== undefined)
    throw new InputError(`The ${kind} has a payload next to its JWS, which is not signed.`);
  if (statement.format === "jws" && !COMPACT_JWS.test(statement.jws))
    throw new InputError(`The ${kind}'s JWS has characters outside base64url.`);
  const { username, password } = new URL(statement.payload.resourceUrl);
  if (username !== "" || password !== "")
    throw new InputError(
      `The ${kind}'s resourceUrl is ${quote(statement.payload.resourceUrl)}, which contains a user name.`,
    );
  return statement;
}

const isWhole = (value: Json | undefined): boolean => Number.isSafeInteger(value) && Number(value) >= 0;

function decoded(kind: Kind, part: string): JsonObject {
  const value = parsed(kind, part);
  if (!isObject(value)) throw new InputError(`The ${kind}'s JWS does not hold a JSON object.`);
  return value;
}

function parsed(kind: Kind, part: string): Json {
  try {
    return parseStrictJson(base64url.decode(part));
  } catch (error) {
    const why = error instanceof Refusal ? error.message : "not base64url";
    throw new InputError(`The ${kind}'s JWS cannot be read: ${why}.`);
  }
}

function readPayload(kind: Kind, payload: Json | undefined): Payload {
  if (!isObject(payload)) throw new InputError(`The ${kind} has no payload.`);
  const members: Readonly<Record<string, string>> = MEMBERS[kind];
  // A JWS receipt may omit its transaction; in EIP-712 it is empty.
  const whole: JsonObject = kind === "receipt" ? { transaction: "", ...payload } : payload;
  for (const [name, type] of Object.entries(members))
    if (typeof whole[name] !== type || (type === "number" && !isWhole(whole[name])))
      throw new InputError(
        `The ${kind}'s ${name} is ${quote(whole[name])}; expected a ${type}${type === "number" ? " from 0" : ""}.`,
      );
  const strange = Object.keys(whole).find((name) => !Object.hasOwn(members, name));
  if (strange !== undefined) throw new InputError(`The ${kind} has an unknown member ${quote(strange)}.`);
  if (whole.version !== 1) throw new InputError(`The ${kind} has version ${quote(whole.version)}; expected 1.`);
  if (!URL.canParse(String(whole.resourceUrl)))
    throw new InputError(`The ${kind}'s resourceUrl is ${quote(whole.resourceUrl)}, which is not a URL.`);
  return whole as unknown as Payload;
}
