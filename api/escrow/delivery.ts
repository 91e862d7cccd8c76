import { createHash } from "node:crypto";
import { z } from "zod";
import {
  conditionsSha256,
  LONGEST_CONTEST_SECONDS,
  MAX_CONDITIONS_BYTES,
} from "../../packages/escrow/src/contest-terms.ts";
import { DELIVERY_TYPES } from "../../packages/escrow/src/delivery.ts";
import { bytes32Word, domainHash, textWord, typedDigest, typeHash, uintWord } from "../platform/chain/typed-data.ts";
import { memoize } from "../platform/memo.ts";
import { NETWORKS, type NetworkFacts } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { Hold } from "./payment.ts";

/** The version of the type that a merchant signs for a delivery, and of the rules by which it is evaluated. */
export const DELIVERY_VERSION = 1;

/** A merchant's response to its buyer, as the merchant forwards it. */
export interface Delivery {
  /** HTTP status. */
  readonly status: number;
  /** The content type it was sent with, or null if unknown. */
  readonly contentType: string | null;
  /** `Content-Encoding` as sent, or null if absent. */
  readonly contentEncoding: string | null;
  /** As sent, in its content coding. */
  readonly body: Uint8Array;
  /** The contest that the payer may make, as the merchant states it, or null for none. */
  readonly contest: StatedContest | null;
}

/** The terms of a contest as forwarded, with the inputs of the payer's salt. */
export interface StatedContest {
  readonly seconds: number;
  /** By category, as submitted. */
  readonly conditions: Readonly<Record<string, unknown>>;
  readonly saltNonce: bigint;
}

const hex = (pattern: RegExp, expected: string) =>
  z
    .string()
    .regex(pattern, `expected ${expected}`)
    .transform((text) => text.toLowerCase() as Hex);
export const bytes32 = hex(/^0x[0-9a-f]{64}$/i, "32 bytes in hex");
const address = hex(/^0x[0-9a-f]{40}$/i, "an address");
const whole = (bits: number) =>
  z
    .union([z.string().regex(/^\d{1,78}$/), z.number().int().nonnegative().refine(Number.isSafeInteger)])
    .transform((value) => BigInt(value))
    .refine((value) => value < 2n ** BigInt(bits), `expected a whole number of at most ${bits} bits`);
const time = whole(48).transform(Number);
const bps = whole(16).transform(Number);

const PAYMENT_INFO = z.object({
  operator: address,
  payer: address,
  receiver: address,
  token: address,
  maxAmount: whole(120),
  preApprovalExpiry: time,
  authorizationExpiry: time,
  refundExpiry: time,
  minFeeBps: bps,
  maxFeeBps: bps,
  feeReceiver: address,
  salt: z.union([whole(256), bytes32.transform((text) => BigInt(text))]),
});

/** Empty if a wallet's contract has stored what it signs. */
export const SIGNATURE = hex(/^0x([0-9a-f]{2}){0,4096}$/i, "a signature in hex");

/** Returns whether RFC 8785 defines a canonical form of it, as signed records require. */
function isWellFormed(conditions: object): boolean {
  let isWhole = true;
  JSON.stringify(conditions, (name, value: unknown) => {
    isWhole &&= name.isWellFormed() && (typeof value !== "string" || value.isWellFormed());
    return value;
  });
  return isWhole;
}

/** The terms of a contest, as bound by the payer's salt. */
const CONTEST_TERMS = z.object({
  seconds: z.number().int().min(1).max(LONGEST_CONTEST_SECONDS),
  conditions: z
    .record(z.string(), z.unknown())
    .refine((conditions) => Buffer.byteLength(JSON.stringify(conditions)) <= MAX_CONDITIONS_BYTES, {
      message: `expected at most ${MAX_CONDITIONS_BYTES} bytes of JSON`,
    })
    .refine(isWellFormed, "expected no lone surrogates"),
  salt_nonce: bytes32,
});

const RESPONSE = z.object({
  status: z.number().int().min(100).max(599),
  headers: z.record(z.string(), z.union([z.string(), z.array(z.string())])).optional(),
  body: z.string().optional(),
  body_base64: z
    .string()
    .regex(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/, "expected base64")
    .optional(),
});

/** The body of `POST /escrow/verify`. */
export const FORWARD = z
  .object({
    payment_id: bytes32.optional(),
    paymentInfo: PAYMENT_INFO.optional(),
    transaction: bytes32.optional(),
    response: RESPONSE.optional(),
    responseBody: z.string().optional(),
    signature: SIGNATURE.optional(),
    delivery_version: z.literal(DELIVERY_VERSION).optional(),
    contest: CONTEST_TERMS.optional(),
  })
  .refine(
    (body) => [body.payment_id, body.paymentInfo, body.transaction].filter((name) => name !== undefined).length === 1,
    "expected exactly one of payment_id, paymentInfo and transaction",
  )
  .refine(
    (body) => (body.response === undefined) !== (body.responseBody === undefined),
    "expected exactly one of response {status, headers, body} and responseBody",
  )
  .refine(
    ({ response }) => response?.body === undefined || response.body_base64 === undefined,
    "expected body or body_base64, not both",
  );

export type Forward = z.infer<typeof FORWARD>;

/** Returns the delivery in a forwarded body. A bare `responseBody` counts as a response with status 200. */
export function deliveryOf({ response, responseBody, contest }: Forward): Delivery {
  const bound =
    contest === undefined
      ? null
      : { seconds: contest.seconds, conditions: contest.conditions, saltNonce: BigInt(contest.salt_nonce) };
  if (response === undefined) {
    const body = Buffer.from(responseBody ?? "");
    return { status: 200, contentType: null, contentEncoding: null, body, contest: bound };
  }
  const { status, headers = {}, body, body_base64 } = response;
  const headerValue = (wanted: string) => {
    const value = Object.entries(headers).find(([name]) => name.toLowerCase() === wanted)?.[1];
    return (Array.isArray(value) ? value[0] : value) ?? null;
  };
  return {
    contest: bound,
    status,
    contentType: headerValue("content-type"),
    contentEncoding: headerValue("content-encoding"),
    body: body_base64 === undefined ? Buffer.from(body ?? "") : Buffer.from(body_base64, "base64"),
  };
}

export const sha256 = (data: Uint8Array | string): Hex => `0x${createHash("sha256").update(data).digest("hex")}`;

/** The domain of one escrow contract (EIP-712), under which a merchant signs `DELIVERY_TYPES`. */
export const deliveryDomain = ({ chainId }: NetworkFacts, contract: Address) => ({
  name: "Agent Payment Trust Delivery",
  version: "1",
  chainId,
  verifyingContract: contract,
});

const TYPE_HASH = typeHash("Delivery", DELIVERY_TYPES.types.Delivery);
const NO_CONDITIONS: Hex = `0x${"00".repeat(32)}`;
const domainHashes = memoize<string>(16);

type Delivered = Pick<Hold, "network" | "contract" | "id">;

/** Returns the digest that the merchant signs. */
export const deliveryDigest = (payment: Delivered, delivery: Delivery): Hex =>
  signedDigest(payment, hashedOf(signedOf(delivery)), delivery.contest);

/** The response as covered by a merchant's signature. */
export interface SignedDelivery {
  readonly status: number;
  readonly body_sha256: Hex;
  readonly content_type: string;
  readonly content_encoding: string;
}

export const signedOf = ({
  status,
  contentType,
  contentEncoding,
  body,
}: Pick<Delivery, "status" | "contentType" | "contentEncoding" | "body">): SignedDelivery => ({
  status,
  body_sha256: sha256(body),
  // EIP-712 hashes UTF-8, in which a lone surrogate is U+FFFD.
  content_type: contentType?.toWellFormed() ?? "",
  content_encoding: contentEncoding?.toWellFormed() ?? "",
});

/** The same as hashed by EIP-712: headers of any length and any bytes. */
export interface HashedDelivery {
  readonly status: number;
  readonly body_sha256: Hex;
  /** Keccak-256, like the next one. */
  readonly content_type_keccak256: Hex;
  readonly content_encoding_keccak256: Hex;
}

export const textHash = (text: string): Hex => `0x${textWord(text)}`;

const hashedOf = ({ status, body_sha256, content_type, content_encoding }: SignedDelivery): HashedDelivery => ({
  status,
  body_sha256,
  content_type_keccak256: textHash(content_type),
  content_encoding_keccak256: textHash(content_encoding),
});

/** Returns the same digest from the known parts of the response. */
export function signedDigest(
  { network, contract, id }: Delivered,
  { status, body_sha256, content_type_keccak256, content_encoding_keccak256 }: HashedDelivery,
  contest: Pick<StatedContest, "seconds" | "conditions"> | null,
): Hex {
  const domain = domainHashes(`${network} ${contract}`, () => domainHash(deliveryDomain(NETWORKS[network], contract)));
  const members = [
    bytes32Word(id),
    uintWord(status, 16),
    bytes32Word(body_sha256),
    bytes32Word(content_type_keccak256),
    bytes32Word(content_encoding_keccak256),
    uintWord(contest?.seconds ?? 0, 32),
    bytes32Word(contest === null ? NO_CONDITIONS : conditionsSha256(contest.conditions)),
  ];
  return typedDigest(domain, TYPE_HASH + members.join(""));
}
