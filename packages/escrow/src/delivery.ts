import { type Hex, type LocalAccount, sha256, type TypedDataDefinition, zeroHash } from "viem";
import { joined } from "./bytes.ts";
import { type BoundContest, conditionsSha256 } from "./contest-terms.ts";
import type { EscrowFacts } from "./terms.ts";

/** The largest body to deliver, in bytes. */
export const MAX_BODY_BYTES = 256 * 1024;

/** A merchant handler's response, as the buyer gets it. */
export interface Delivery {
  readonly status: number;
  /** In order; `set-cookie` may appear more than once. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array;
}

/**
 * Reads a response to its end. If it is larger than 256 KiB or breaks off, returns a 500 with that error, which the
 * arbiter refunds.
 */
export async function readDelivery(response: Response): Promise<Delivery> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of response.body ?? []) {
      length += chunk.length;
      if (length > MAX_BODY_BYTES) return tooLarge();
      chunks.push(chunk);
    }
  } catch {
    return failure("The merchant's response broke off.");
  }
  return { status: response.status, headers: [...response.headers], body: joined(chunks) };
}

const failure = (error: string): Delivery => ({
  status: 500,
  headers: [["content-type", "application/json"]],
  body: new TextEncoder().encode(JSON.stringify({ error })),
});

const tooLarge = (): Delivery =>
  failure(`The merchant's response is larger than ${MAX_BODY_BYTES} bytes, the largest that can be evaluated.`);

/**
 * The EIP-712 type that a merchant signs. The two headers determine how to read the body; each is empty if it was not
 * sent. The last two members are the window to contest and the hash of its conditions, or zero without a contest.
 */
export const DELIVERY_TYPES = {
  primaryType: "Delivery",
  types: {
    Delivery: [
      { name: "paymentId", type: "bytes32" },
      { name: "status", type: "uint16" },
      { name: "bodySha256", type: "bytes32" },
      { name: "contentType", type: "string" },
      { name: "contentEncoding", type: "string" },
      { name: "contestSeconds", type: "uint32" },
      { name: "conditionsSha256", type: "bytes32" },
    ],
  },
} as const;

/** Returns the value of a header of the delivery; empty if it is absent. */
export const headerOf = ({ headers }: Delivery, wanted: string): string =>
  headers.find(([name]) => name.toLowerCase() === wanted)?.[1] ?? "";

/**
 * Returns the EIP-712 typed data that a merchant signs for a delivery. It binds the payment, the status, the body's
 * bytes, the content type and coding (empty if absent), and the contest of the payer (zero for none).
 * @param contest the contest of a payment whose terms have a window
 */
// biome-ignore lint/complexity/useMaxParams: a published signature
export const deliveryTypedData = (
  { chainId, address, deliveryDomain }: EscrowFacts,
  id: Hex,
  delivery: Delivery,
  contest?: BoundContest,
): TypedDataDefinition => ({
  domain: { ...deliveryDomain, chainId, verifyingContract: address },
  ...DELIVERY_TYPES,
  message: {
    paymentId: id,
    status: delivery.status,
    bodySha256: sha256(delivery.body),
    contentType: headerOf(delivery, "content-type"),
    contentEncoding: headerOf(delivery, "content-encoding"),
    contestSeconds: contest?.seconds ?? 0,
    conditionsSha256: contest === undefined ? zeroHash : conditionsSha256(contest.conditions),
  },
});

/** Returns the merchant's signature of a delivery. */
// biome-ignore lint/complexity/useMaxParams: a published signature
export const signDelivery = (
  account: LocalAccount,
  escrow: EscrowFacts,
  id: Hex,
  delivery: Delivery,
  contest?: BoundContest,
): Promise<Hex> => account.signTypedData(deliveryTypedData(escrow, id, delivery, contest));
