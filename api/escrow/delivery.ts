import { createHash } from "node:crypto";
import { hashTypedData } from "viem";
import { z } from "zod";
import { NETWORKS, type NetworkFacts } from "../kernel/networks.ts";
import type { Address, Hex } from "../kernel/wallet.ts";
import type { Delivery } from "./evaluation.ts";
import type { Hold } from "./payment.ts";

const hex = (pattern: RegExp, expected: string) =>
  z
    .string()
    .regex(pattern, `expected ${expected}`)
    .transform((text) => text.toLowerCase() as Hex);
const bytes32 = hex(/^0x[0-9a-f]{64}$/i, "32 bytes in hex");
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
    signature: hex(/^0x([0-9a-f]{2}){1,4096}$/i, "a signature in hex").optional(),
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

/** The delivery in a forwarded body. A bare `responseBody` counts as answered with status 200. */
export function deliveryOf({ response, responseBody }: Forward): Delivery {
  if (response === undefined) return { status: 200, contentType: null, body: Buffer.from(responseBody ?? "") };
  const { status, headers = {}, body, body_base64 } = response;
  const named = Object.entries(headers).find(([name]) => name.toLowerCase() === "content-type")?.[1];
  return {
    status,
    contentType: (Array.isArray(named) ? named[0] : named) ?? null,
    body: body_base64 === undefined ? Buffer.from(body ?? "") : Buffer.from(body_base64, "base64"),
  };
}

export const sha256 = (bytes: Uint8Array): Hex => `0x${createHash("sha256").update(bytes).digest("hex")}`;

const TYPES = {
  Delivery: [
    { name: "paymentId", type: "bytes32" },
    { name: "status", type: "uint16" },
    { name: "bodySha256", type: "bytes32" },
  ],
} as const;

/** What a merchant signs for a delivery, under the domain of one escrow contract (EIP-712). */
export const deliveryDomain = ({ chainId }: NetworkFacts, contract: Address) => ({
  name: "Agent Payment Trust Delivery",
  version: "1",
  chainId,
  verifyingContract: contract,
});

export const DELIVERY_TYPES = { primaryType: "Delivery", types: TYPES } as const;

/** The digest the merchant signs. */
export const deliveryDigest = (
  { network, contract, id }: Pick<Hold, "network" | "contract" | "id">,
  delivery: Delivery,
): Hex =>
  hashTypedData({
    domain: deliveryDomain(NETWORKS[network], contract),
    types: TYPES,
    primaryType: "Delivery",
    message: { paymentId: id, status: delivery.status, bodySha256: sha256(delivery.body) },
  });
