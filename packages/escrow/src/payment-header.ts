import type { Address, Hex } from "viem";
import type { Authorization } from "./authorization.ts";
import { isObject, type PaymentHeaders, readEnvelopes } from "./envelope.ts";
import type { PaymentInfo } from "./payment-info.ts";
import { address, hex, record, unlessMalformed, whole } from "./wire-fields.ts";

/** A payment's payload; none of it has been verified yet. */
export interface PresentedPayload {
  readonly info: PaymentInfo;
  /** As stated in the payment; the contract derives its own from the terms. */
  readonly authorization: Authorization;
  readonly signature: Hex;
  /** The nonce in the salt's preimage, if the offer has a policy. */
  readonly saltNonce?: bigint | undefined;
}

/** A payload, with the scheme and network that the client claims to have accepted; undefined if omitted. */
export interface PresentedPayment extends PresentedPayload {
  readonly scheme: unknown;
  readonly network: unknown;
}

/** A payment as in its header: the terms that the client claims to have accepted, and the scheme's own payload. */
export interface DecodedHeader {
  /** The header's name. */
  readonly header: string;
  /** Empty if the client omitted it. */
  readonly accepted: Readonly<Record<string, unknown>>;
  readonly payload: unknown;
  /** The URL that the payment claims to be for, if any. */
  readonly resource: unknown;
}

/** The largest payment header, in bytes, with room for an ERC-1271 signature of 2 KiB. */
const MAX_HEADER_BYTES = 16_384;

/**
 * Decodes the payment headers of a request, for x402 version 2. Null without any. `malformed` gives the reason for an
 * invalid one; `refused` gives it for an `X-PAYMENT` alone, whose client may know version 1 only and is shown the
 * terms.
 */
export function decodePaymentHeaders(
  headers: PaymentHeaders,
): DecodedHeader | { readonly malformed: string } | { readonly refused: string } | null {
  const decoded = decode(headers);
  const isOld = (headers["PAYMENT-SIGNATURE"] ?? null) === null;
  return decoded !== null && "malformed" in decoded && isOld ? { refused: decoded.malformed } : decoded;
}

function decode(headers: PaymentHeaders): DecodedHeader | { readonly malformed: string } | null {
  const envelopes = readEnvelopes(headers, MAX_HEADER_BYTES);
  if (envelopes === null || "malformed" in envelopes) return envelopes;
  const [{ header, version, members }] = envelopes;
  const no = (why: string) => ({ malformed: `${header} is not an x402 version 2 payment: ${why}.` });
  if (version !== 2) return no("x402Version is 1, and this sale takes version 2 only");
  const { accepted = {}, payload, resource } = members;
  const read = unlessMalformed(() => ({
    ...{ accepted: record(accepted, "accepted"), header, payload },
    resource: isObject(resource) ? resource.url : (resource ?? undefined),
  }));
  return "malformed" in read ? no(read.malformed) : read;
}

/**
 * Returns whether the resource that a payment names has this URL's path. The query is input, which a buyer may correct.
 */
export function isFor(resource: unknown, url: string): boolean {
  if (resource === undefined) return true;
  if (typeof resource !== "string" || !URL.canParse(resource, url)) return false;
  return new URL(resource, url).pathname === new URL(url).pathname;
}

/** Parses the `payload` of a decoded header; `malformed` gives the reason if it is invalid. */
export const parsePayload = (payload: unknown): PresentedPayload | { readonly malformed: string } =>
  unlessMalformed(() => readPayload(payload));

function readPayload(given: unknown): PresentedPayload {
  const payload = record(given, "payload");
  const authorization = readAuthorization(payload.authorization);
  return {
    info: paymentInfo(record(payload.paymentInfo, "payload.paymentInfo"), authorization.from),
    authorization,
    signature: readSignature(payload.signature ?? payload.collectorData),
    saltNonce: payload.saltNonce === undefined ? undefined : whole(payload.saltNonce, 256, "payload.saltNonce"),
  };
}

/** Parses the EIP-3009 authorization of a payload. @throws Malformed */
export function readAuthorization(given: unknown): Authorization {
  const { from, to, value, validAfter, validBefore, nonce } = record(given, "payload.authorization");
  return {
    from: address(from, "authorization.from"),
    to: address(to, "authorization.to"),
    value: whole(value, 256, "authorization.value"),
    validAfter: whole(validAfter, 256, "authorization.validAfter"),
    validBefore: whole(validBefore, 256, "authorization.validBefore"),
    nonce: hex(nonce, /^0x[0-9a-f]{64}$/i, "authorization.nonce"),
  };
}

/** @throws Malformed */
export const readSignature = (given: unknown): Hex => hex(given, /^0x([0-9a-f]{2}){1,4096}$/i, "signature");

/** The draft omits the payer from the terms, because the authorization names it; if it is present, it must match. */
const paymentInfo = (info: Record<string, unknown>, from: Address): PaymentInfo => ({
  operator: address(info.operator, "paymentInfo.operator"),
  payer: info.payer === undefined ? from : address(info.payer, "paymentInfo.payer"),
  receiver: address(info.receiver, "paymentInfo.receiver"),
  token: address(info.token, "paymentInfo.token"),
  maxAmount: whole(info.maxAmount, 120, "paymentInfo.maxAmount"),
  preApprovalExpiry: Number(whole(info.preApprovalExpiry, 48, "paymentInfo.preApprovalExpiry")),
  authorizationExpiry: Number(whole(info.authorizationExpiry, 48, "paymentInfo.authorizationExpiry")),
  refundExpiry: Number(whole(info.refundExpiry, 48, "paymentInfo.refundExpiry")),
  minFeeBps: Number(whole(info.minFeeBps, 16, "paymentInfo.minFeeBps")),
  maxFeeBps: Number(whole(info.maxFeeBps, 16, "paymentInfo.maxFeeBps")),
  feeReceiver: address(info.feeReceiver, "paymentInfo.feeReceiver"),
  salt: whole(info.salt, 256, "paymentInfo.salt"),
});
