import { randomBytes } from "node:crypto";
import { decodePaymentResponseHeader } from "@x402/core/http";
import type { Address, Hex } from "viem";
import { AUTHORIZATION_MEMBERS, type Authorization } from "../../../escrow/src/authorization.ts";
import type { Answer } from "./exchange.ts";
import { type Bound, bind, type HoldKey } from "./hold.ts";
import type { Terms } from "./terms.ts";

/** Anyone may submit the first; only its recipient may submit the second. */
const TYPES = {
  TransferWithAuthorization: AUTHORIZATION_MEMBERS,
  ReceiveWithAuthorization: AUTHORIZATION_MEMBERS,
} as const;

/** The signed data, in viem's form. */
export interface TypedAuthorization {
  readonly domain: {
    readonly name: string;
    readonly version: string;
    readonly chainId: number;
    readonly verifyingContract: Address;
  };
  readonly types: typeof TYPES;
  readonly primaryType: "TransferWithAuthorization" | "ReceiveWithAuthorization";
  readonly message: Authorization;
}

/** The account that pays in an exam. Its keys never leave it. */
export interface Payer {
  readonly address: Address;
  readonly signTypedData: (data: TypedAuthorization) => Promise<Hex>;
}

/** A signed payment, as in a request. */
export interface Payment {
  readonly authorization: Authorization;
  /** Null under `exact`. */
  readonly hold: HoldKey | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** The longest validity of a payment in an exam, in seconds. */
const MOST_VALID_SECONDS = 300;

/** An authorization without its nonce. */
export type Draft = Omit<Authorization, "nonce">;

/** Returns a draft exactly as quoted. `now` is the chain's time in Unix seconds. */
export const asQuoted = ({ payTo, amount, maxTimeoutSeconds, hold }: Terms, from: Address, now: number): Draft => ({
  from,
  to: recipientOf({ payTo, hold }),
  value: amount,
  // The chain's clock can be some blocks behind. An escrow's collector redeems with 0.
  validAfter: hold === null ? BigInt(now - 600) : 0n,
  validBefore: BigInt(now + Math.min(Math.max(Math.trunc(maxTimeoutSeconds) || 1, 1), MOST_VALID_SECONDS)),
});

/** Returns the recipient of the payer's transfer: the payee, or the escrow's collector. */
export const recipientOf = ({ payTo, hold }: Pick<Terms, "payTo" | "hold">): Address => hold?.collector ?? payTo;

/** The presented payment, and the one that is really signed if it differs. */
export interface Signing {
  readonly terms: Terms;
  readonly draft: Draft;
  readonly really?: Draft;
}

/** Returns a draft with its nonce: a random one, or the hash of the terms of its hold. */
export function numbered(terms: Terms, draft: Draft): Numbered {
  const bound = terms.hold === null ? null : bind(terms, terms.hold, draft);
  const nonce = bound?.nonce ?? (`0x${randomBytes(32).toString("hex")}` as const);
  return { authorization: { ...draft, nonce }, bound };
}

export interface Numbered {
  readonly authorization: Authorization;
  readonly bound: Bound | null;
}

/** Signs a numbered authorization and puts it into the header for the terms' version. */
export async function signed(
  payer: Payer,
  {
    terms,
    authorization,
    bound,
    really = authorization,
  }: Numbered & { readonly terms: Terms; readonly really?: Draft },
): Promise<Payment> {
  const signature = await payer.signTypedData({
    domain: {
      ...terms.domain,
      chainId: Number(terms.network.slice("eip155:".length)),
      verifyingContract: terms.asset,
    },
    types: TYPES,
    primaryType: bound === null ? "TransferWithAuthorization" : "ReceiveWithAuthorization",
    message: { ...really, nonce: authorization.nonce },
  });
  const { value, validAfter, validBefore, ...rest } = authorization;
  const texts = { ...rest, value: `${value}`, validAfter: `${validAfter}`, validBefore: `${validBefore}` };
  const payload = { signature, authorization: texts, ...bound?.salted };
  return { authorization, hold: bound?.hold ?? null, headers: headersOf(terms, payload) };
}

function headersOf(terms: Terms, payload: object): Readonly<Record<string, string>> {
  const { version, accepted, resource } = terms;
  if (version === 1)
    return { "x-payment": base64({ x402Version: 1, scheme: accepted.scheme, network: accepted.network, payload }) };
  return { "payment-signature": base64({ x402Version: 2, resource, accepted, payload }) };
}

const base64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64");

/** Returns the settlement that a seller reports; null if there is none that can be read. */
export function settlementSaid({ headers }: Answer): Readonly<Record<string, unknown>> | null {
  const header = headers["payment-response"] ?? headers["x-payment-response"];
  if (header === undefined) return null;
  try {
    const decoded: unknown = decodePaymentResponseHeader(header);
    return typeof decoded === "object" ? (decoded as Record<string, unknown> | null) : null;
  } catch {
    return null;
  }
}
