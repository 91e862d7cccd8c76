import type { Hex, LocalAccount } from "viem";
import { encodeBytes } from "./bytes.ts";
import { type BoundContest, contestOnWire } from "./contest-terms.ts";
import { type Delivery, signDelivery } from "./delivery.ts";
import type { PaymentInfo } from "./payment-info.ts";
import type { EscrowFacts } from "./terms.ts";

export type Decision = "release" | "refund";

export interface ForwardRequest {
  readonly id: Hex;
  /** The payment's terms, with which the arbiter checks the merchant's signature before anything else. */
  readonly info: PaymentInfo;
  readonly delivery: Delivery;
  readonly escrow: EscrowFacts;
  /** The contest that the payer may bring before the release; undefined for none. */
  readonly contest?: BoundContest | undefined;
}

/**
 * Gives a delivery to the arbiter.
 * @throws HoldEnded if the money can no longer reach the merchant; ForwardRefused if retrying is useless; any other
 * error if it may help
 */
export type Forward = (request: ForwardRequest) => Promise<Decision>;

/**
 * The arbiter refuses this delivery permanently, or this payer's deliveries for today. The buyer gets no goods
 * meanwhile.
 */
export class ForwardRefused extends Error {}

/** The hold ended before the delivery was evaluated: refunded, or too close to its end. The buyer gets no goods. */
export class HoldEnded extends Error {}

const TIMEOUT_MS = 30_000;
/** Statuses for requests that come too early or too often, and may be accepted later. */
const PASSING = new Set([404, 408, 425, 429]);

/** Forwards to `POST {arbiterUrl}/escrow/verify`, signed by the merchant. */
export const forwardTo =
  (arbiterUrl: string, account: LocalAccount): Forward =>
  async ({ id, info, delivery, escrow, contest }) => {
    const signature = await signDelivery(account, escrow, id, delivery, contest);
    const paymentInfo = { ...info, maxAmount: String(info.maxAmount), salt: String(info.salt) };
    const response = await fetch(`${arbiterUrl}/escrow/verify`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({
        paymentInfo,
        response: wire(delivery),
        signature,
        delivery_version: 1,
        ...(contest === undefined ? {} : { contest: contestOnWire(contest) }),
      }),
      redirect: "error",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const answer = (await response.json().catch(() => ({}))) as {
      decision?: unknown;
      code?: unknown;
      detail?: unknown;
    };
    if (response.ok && (answer.decision === "release" || answer.decision === "refund")) return answer.decision;
    const why = `The arbiter returned ${response.status} for ${id}: ${String(answer.detail ?? "no decision")}`;
    if (answer.code === "escrow_over") throw new HoldEnded(why);
    // It would not be released before tomorrow, so this is not a mere delay of the decision: the buyer gets no goods
    // meanwhile.
    const isSpent = answer.code === "payer_gas_spent";
    const isFinal = isSpent || (response.status >= 400 && response.status < 500 && !PASSING.has(response.status));
    throw isFinal ? new ForwardRefused(why) : new Error(why);
  };

/** Returns a response in the arbiter's form, with only those headers that describe the body, and no cookies. */
function wire({ status, headers, body }: Delivery) {
  const described = Object.fromEntries(headers.filter(([name]) => /^content-(type|encoding|language)$/i.test(name)));
  const text = asText(body);
  return { status, headers: described, ...(text === null ? { body_base64: encodeBytes(body) } : { body: text }) };
}

/** Returns the body as text; null if its bytes are not UTF-8, or would take more space in JSON than in base64. */
function asText(body: Uint8Array): string | null {
  try {
    // A byte order mark is part of the signed bytes.
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
    return new TextEncoder().encode(JSON.stringify(text)).length <= body.length * 1.4 + 64 ? text : null;
  } catch {
    return null;
  }
}
