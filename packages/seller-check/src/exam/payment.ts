import { randomBytes } from "node:crypto";
import { decodePaymentResponseHeader } from "@x402/core/http";
import type { Address, Hex } from "viem";
import type { Answer } from "./exchange.ts";
import type { Terms } from "./terms.ts";

const TYPES = {
  TransferWithAuthorization: [
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "validAfter", type: "uint256" },
    { name: "validBefore", type: "uint256" },
    { name: "nonce", type: "bytes32" },
  ],
} as const;

/** An EIP-3009 authorization. Times in seconds, the value in atomic units. */
export interface Authorization {
  readonly from: Address;
  readonly to: Address;
  readonly value: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly nonce: Hex;
}

/** What is signed, in viem's form. */
export interface TypedAuthorization {
  readonly domain: {
    readonly name: string;
    readonly version: string;
    readonly chainId: number;
    readonly verifyingContract: Address;
  };
  readonly types: typeof TYPES;
  readonly primaryType: "TransferWithAuthorization";
  readonly message: Authorization;
}

/** Who pays in an exam. Its keys never leave it. */
export interface Payer {
  readonly address: Address;
  readonly signTypedData: (data: TypedAuthorization) => Promise<Hex>;
}

/** A signed payment, as a request carries it. */
export interface Payment {
  readonly authorization: Authorization;
  readonly headers: Readonly<Record<string, string>>;
}

/** The longest that a payment of an exam stays valid, in seconds. */
const MOST_VALID_SECONDS = 300;

/** An authorization exactly as quoted. `now` is the chain's time in Unix seconds. */
export const asQuoted = ({ payTo, amount, maxTimeoutSeconds }: Terms, from: Address, now: number): Authorization => ({
  from,
  to: payTo,
  value: amount,
  // A chain's clock can be behind by some blocks.
  validAfter: BigInt(now - 600),
  validBefore: BigInt(now + Math.min(Math.max(Math.trunc(maxTimeoutSeconds) || 1, 1), MOST_VALID_SECONDS)),
  nonce: `0x${randomBytes(32).toString("hex")}`,
});

/** What a payment presents, and what is really signed for it where that is something else. */
export interface Signing {
  readonly terms: Terms;
  readonly authorization: Authorization;
  readonly really?: Authorization;
}

/** Signs an authorization and puts it into the header of the terms' version. */
export async function signed(
  payer: Payer,
  { terms, authorization, really = authorization }: Signing,
): Promise<Payment> {
  const signature = await payer.signTypedData({
    domain: {
      ...terms.domain,
      chainId: Number(terms.network.slice("eip155:".length)),
      verifyingContract: terms.asset,
    },
    types: TYPES,
    primaryType: "TransferWithAuthorization",
    message: really,
  });
  const { value, validAfter, validBefore, ...rest } = authorization;
  const texts = { ...rest, value: `${value}`, validAfter: `${validAfter}`, validBefore: `${validBefore}` };
  return { authorization, headers: headersOf(terms, { signature, authorization: texts }) };
}

function headersOf(terms: Terms, payload: object): Readonly<Record<string, string>> {
  const { version, accepted, resource } = terms;
  if (version === 1)
    return { "x-payment": base64({ x402Version: 1, scheme: accepted.scheme, network: accepted.network, payload }) };
  return { "payment-signature": base64({ x402Version: 2, resource, accepted, payload }) };
}

const base64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64");

/** What a seller says that it settled; null if it says nothing that can be read. */
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
