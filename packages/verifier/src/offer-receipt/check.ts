import { InputError } from "../refusal.ts";
import type { Json } from "../strict-json.ts";
import { listedKey, publicJwk } from "./did-document.ts";
import { speakerFor } from "./speaker.ts";
import { type Kind, type Payload, readSubmitted, type Statement } from "./statement.ts";
import { verifyJws } from "./verify-jws.ts";

/** The values that a signed offer or receipt is compared with. */
export interface Expected {
  /** The text of the trusted DID document, for a JWS. */
  readonly did?: string | Uint8Array | undefined;
  /**
   * A public JWK that you know to be the seller's from another source. A JWS is checked with it alone, whatever host
   * its `kid` names.
   */
  readonly key?: Json | undefined;
  /** The expected signer of an EIP-712 receipt, which does not name its signer. An offer names its own `payTo`. */
  readonly payTo?: string | undefined;
  /** Unix seconds. An offer must be valid at this time. */
  readonly at: number;
  /** The values that the payload must have, member by member. */
  readonly members?: Readonly<Record<string, Json | undefined>> | undefined;
}

/** A condition, and whether it holds. */
export interface Check {
  readonly statement: string;
  readonly holds: boolean;
}

export interface SignedReport {
  /** Whether it is genuine and, for an offer, not expired. */
  readonly valid: boolean;
  /** Whether every check other than the time holds: an expired offer is still evidence of the offer. */
  readonly genuine: boolean;
  readonly checks: readonly Check[];
  readonly payload: Payload;
}

/**
 * Checks a signed offer or receipt of the x402 extension `offer-receipt`. A valid signature alone is not enough,
 * because anyone can sign an offer for anyone's URL: a JWS must be signed by a key of the resource's own host, and an
 * EIP-712 signature must be the payee's.
 * @throws InputError if it is not a signed offer or receipt, or if a DID document cannot be read
 */
export async function checkSigned(kind: Kind, signed: Json, expected: Expected): Promise<SignedReport> {
  const statement = readSubmitted(kind, signed);
  const { payload } = statement;
  const checks = [
    ...(await (statement.format === "jws" ? checkJws(statement, expected) : checkTypedData(statement, expected))),
    ...Object.entries(expected.members ?? {}).map(([name, value]) =>
      check(`${name} is ${String(value)}`, same(payload[name], value)),
    ),
  ];
  const timely =
    kind === "offer" ? [check("the offer has not expired", Number(payload.validUntil) >= expected.at)] : [];
  const genuine = checks.every(({ holds }) => holds);
  return {
    valid: genuine && timely.every(({ holds }) => holds),
    genuine,
    checks: [...checks, ...timely],
    payload,
  };
}

type Jws = Extract<Statement, { format: "jws" }>;
type TypedData = Extract<Statement, { format: "eip712" }>;

async function checkJws({ kid, jws, payload }: Jws, { did, key }: Expected): Promise<readonly Check[]> {
  if (key !== undefined) {
    const trusted = publicJwk(key);
    if (trusted === null)
      throw new InputError("The trusted key is not a public JWK of Ed25519 (OKP), P-256 (EC), or secp256k1 (EC).");
    return [check("the JWS verifies", await verifyJws(jws, trusted))];
  }
  const jwk = did === undefined ? null : listedKey(did, kid);
  return [
    check(
      `the key is one of ${new URL(payload.resourceUrl).host}, the resource's host`,
      speakerFor(payload.resourceUrl, kid) !== null,
    ),
    check("the DID document lists the key", jwk !== null),
    check("the JWS verifies", jwk !== null && (await verifyJws(jws, jwk))),
  ];
}

async function checkTypedData({ kind, payload, signature }: TypedData, { payTo }: Expected): Promise<readonly Check[]> {
  const { signerOf } = await import("./typed-data.ts");
  const paid = kind === "offer" ? String(payload.payTo) : payTo;
  const signer = await signerOf(kind, payload, signature);
  return [check(`the signer is the payee, ${paid ?? "which is unknown"}`, signer !== null && same(signer, paid))];
}

export const check = (statement: string, holds: boolean): Check => ({ statement, holds });

/** Addresses and hashes are compared without regard to case. */
const same = (one: Json | undefined, other: Json | undefined): boolean =>
  one === other || (isHex(one) && isHex(other) && one.toLowerCase() === other.toLowerCase());

const isHex = (value: Json | undefined): value is string =>
  typeof value === "string" && /^0x[0-9a-f]{40}(?:[0-9a-f]{24})?$/i.test(value);
