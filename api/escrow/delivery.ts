import { createHash } from "node:crypto";
import { z } from "zod";
import {
  conditionsSha256,
  LONGEST_CONTEST_SECONDS,
  MAX_CONDITIONS_BYTES,
} from "../../packages/escrow/src/contest-terms.ts";
import { bytes32Word, uintWord } from "../kernel/abi-words.ts";
import { remember } from "../kernel/memo.ts";
import { NETWORKS, type NetworkFacts } from "../kernel/networks.ts";
import { domainHash, textWord, typedDigest, typeHash } from "../kernel/typed-data.ts";
import type { Address, Hex } from "../kernel/wallet.ts";
import type { Delivery, DeliveryVersion, StatedContest } from "./evaluation.ts";
import type { Hold } from "./payment.ts";

export const hex = (pattern: RegExp, expected: string) =>
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

const SIGNATURE = hex(/^0x([0-9a-f]{2}){1,4096}$/i, "a signature in hex");

/** The terms of a contest, as the payer's salt binds them. */
const CONTEST_TERMS = z.object({
  seconds: z.number().int().min(1).max(LONGEST_CONTEST_SECONDS),
  conditions: z
    .record(z.string(), z.unknown())
    .refine((conditions) => Buffer.byteLength(JSON.stringify(conditions)) <= MAX_CONDITIONS_BYTES, {
      message: `expected at most ${MAX_CONDITIONS_BYTES} bytes of JSON`,
    }),
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
    delivery_version: z.union([z.literal(1), z.literal(2), z.literal(3)]).optional(),
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
  )
  .refine(
    ({ contest, delivery_version: version }) => (contest !== undefined) === (version === 3),
    "expected contest {seconds, conditions, salt_nonce} with delivery_version 3, and only with it",
  );

export type Forward = z.infer<typeof FORWARD>;

/** The delivery in a forwarded body. A bare `responseBody` counts as answered with status 200; version 1 is the default. */
export function deliveryOf({ response, responseBody, delivery_version: version = 1, contest }: Forward): Delivery {
  const bound =
    contest === undefined
      ? null
      : { seconds: contest.seconds, conditions: contest.conditions, saltNonce: BigInt(contest.salt_nonce) };
  if (response === undefined) {
    const body = Buffer.from(responseBody ?? "");
    return { version, status: 200, contentType: null, contentEncoding: null, body, contest: bound };
  }
  const { status, headers = {}, body, body_base64 } = response;
  const headerValue = (wanted: string) => {
    const value = Object.entries(headers).find(([name]) => name.toLowerCase() === wanted)?.[1];
    return (Array.isArray(value) ? value[0] : value) ?? null;
  };
  return {
    version,
    contest: bound,
    status,
    contentType: headerValue("content-type"),
    contentEncoding: headerValue("content-encoding"),
    body: body_base64 === undefined ? Buffer.from(body ?? "") : Buffer.from(body_base64, "base64"),
  };
}

export const sha256 = (bytes: Uint8Array): Hex => `0x${createHash("sha256").update(bytes).digest("hex")}`;

const VERSION_1 = [
  { name: "paymentId", type: "bytes32" },
  { name: "status", type: "uint16" },
  { name: "bodySha256", type: "bytes32" },
] as const;

/** Version 2 also binds the two headers that say how to read the body; each is empty if it was not sent. */
const VERSION_2 = [
  ...VERSION_1,
  { name: "contentType", type: "string" },
  { name: "contentEncoding", type: "string" },
] as const;

/** Version 3 also binds what the payer may contest. Its payment's terms have a window, and no other version is taken then. */
const VERSION_3 = [
  ...VERSION_2,
  { name: "contestSeconds", type: "uint32" },
  { name: "conditionsSha256", type: "bytes32" },
] as const;

/** What a merchant signs for a delivery, under the domain of one escrow contract (EIP-712). */
export const deliveryDomain = ({ chainId }: NetworkFacts, contract: Address) => ({
  name: "Agent Payment Trust Delivery",
  version: "1",
  chainId,
  verifyingContract: contract,
});

export const DELIVERY_TYPES = { primaryType: "Delivery", types: { Delivery: VERSION_1 } } as const;
export const DELIVERY_TYPES_2 = { primaryType: "Delivery", types: { Delivery: VERSION_2 } } as const;
export const DELIVERY_TYPES_3 = { primaryType: "Delivery", types: { Delivery: VERSION_3 } } as const;

const TYPE_HASHES = {
  1: typeHash("Delivery", VERSION_1),
  2: typeHash("Delivery", VERSION_2),
  3: typeHash("Delivery", VERSION_3),
} as const;
const domainHashes = remember<string>(16);

type Delivered = Pick<Hold, "network" | "contract" | "id">;

/** The digest of the members that follow the payment's id. */
function digestOf(version: DeliveryVersion, { network, contract, id }: Delivered, members: readonly string[]): Hex {
  const domain = domainHashes(`${network} ${contract}`, () => domainHash(deliveryDomain(NETWORKS[network], contract)));
  return typedDigest(domain, TYPE_HASHES[version] + bytes32Word(id) + members.join(""));
}

/** The digest the merchant signs, in the delivery's version. */
export function deliveryDigest(payment: Delivered, delivery: Delivery): Hex {
  const { version, status, contentType, contentEncoding, body, contest } = delivery;
  if (contest !== null) return signedDigest(payment, signedOf(delivery), contest);
  const common = [uintWord(status, 16), bytes32Word(sha256(body))];
  if (version === 1) return digestOf(1, payment, common);
  return digestOf(2, payment, [...common, textWord(contentType ?? ""), textWord(contentEncoding ?? "")]);
}

/** What a merchant's signature of version 3 says of the response. */
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
  content_type: contentType ?? "",
  content_encoding: contentEncoding ?? "",
});

/** The digest of version 3. */
export const signedDigest = (
  payment: Delivered,
  { status, body_sha256, content_type, content_encoding }: SignedDelivery,
  { seconds, conditions }: Pick<StatedContest, "seconds" | "conditions">,
): Hex =>
  digestOf(3, payment, [
    uintWord(status, 16),
    bytes32Word(body_sha256),
    textWord(content_type),
    textWord(content_encoding),
    uintWord(seconds, 32),
    bytes32Word(conditionsSha256(conditions)),
  ]);
