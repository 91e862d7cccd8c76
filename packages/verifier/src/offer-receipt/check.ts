import { compactVerify } from "jose";
import { issuerOfDid } from "../issuer.ts";
import type { Json } from "../strict-json.ts";
import { type DidKey, keyOf } from "./did-document.ts";
import { type Kind, type Payload, readSubmitted, type Statement } from "./statement.ts";

/** What a signed offer or receipt is compared with. */
export interface Expected {
  /** The text of the DID document that is trusted, for a JWS. */
  readonly did?: string | Uint8Array | undefined;
  /** Who must have signed an EIP-712 receipt, which does not say so itself. An offer names its own `payTo`. */
  readonly payTo?: string | undefined;
  /** Unix seconds; an offer must hold then. */
  readonly at: number;
  /** What the payload must say, member by member. */
  readonly members?: Readonly<Record<string, Json | undefined>> | undefined;
}

export interface Check {
  readonly statement: string;
  readonly holds: boolean;
}

export interface SignedReport {
  readonly valid: boolean;
  readonly checks: readonly Check[];
  readonly payload: Payload;
}

/**
 * Checks a signed offer or receipt of the x402 extension `offer-receipt`. A signature alone says little: anybody can
 * sign an offer for anybody's URL. So a JWS must be by a key of the resource's own host, and an EIP-712 signature by
 * the account that is paid.
 * @throws InputError for what is not a signed offer or receipt, or a DID document that cannot be read
 */
export async function checkSigned(kind: Kind, signed: Json, expected: Expected): Promise<SignedReport> {
  const statement = readSubmitted(kind, signed);
  const { payload } = statement;
  const checks = [
    ...(await (statement.format === "jws" ? checkJws(statement, expected) : checkTypedData(statement, expected))),
    ...(kind === "offer" ? [check("the offer still holds", Number(payload.validUntil) >= expected.at)] : []),
    ...Object.entries(expected.members ?? {}).map(([name, value]) =>
      check(`${name} is ${String(value)}`, same(payload[name], value)),
    ),
  ];
  return { valid: checks.every(({ holds }) => holds), checks, payload };
}

type Jws = Extract<Statement, { format: "jws" }>;
type TypedData = Extract<Statement, { format: "eip712" }>;

async function checkJws({ kid, jws, payload }: Jws, { did }: Expected): Promise<readonly Check[]> {
  const key = did === undefined ? null : await keyOf(did, kid);
  return [
    check(
      `the key is one of ${new URL(payload.resourceUrl).host}, the resource's host`,
      originOf(kid) === new URL(payload.resourceUrl).origin,
    ),
    check("the DID document lists the key", key !== null),
    check("the JWS verifies", key !== null && (await verifies(jws, key))),
  ];
}

const verifies = (jws: string, { alg, key }: DidKey): Promise<boolean> =>
  compactVerify(jws, key, { algorithms: [alg] }).then(
    () => true,
    () => false,
  );

/** The origin of a did:web identifier without a path; null for every other. */
const originOf = (kid: string): string | null => issuerOfDid(kid.split("#")[0] ?? "")?.origin ?? null;

async function checkTypedData({ kind, payload, signature }: TypedData, { payTo }: Expected): Promise<readonly Check[]> {
  const { signerOf } = await import("./typed-data.ts");
  const paid = kind === "offer" ? String(payload.payTo) : payTo;
  const signer = await signerOf(kind, payload, signature);
  return [check(`the signer is who is paid, ${paid ?? "which is not known"}`, signer !== null && same(signer, paid))];
}

const check = (statement: string, holds: boolean): Check => ({ statement, holds });

/** Addresses and hashes are the same in either case. */
const same = (one: Json | undefined, other: Json | undefined): boolean =>
  one === other || (isHex(one) && isHex(other) && one.toLowerCase() === other.toLowerCase());

const isHex = (value: Json | undefined): value is string =>
  typeof value === "string" && /^0x[0-9a-f]{40}(?:[0-9a-f]{24})?$/i.test(value);
