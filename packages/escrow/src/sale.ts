import type { Client, Hex } from "viem";
import { type DecisionParts, decide } from "./decide.ts";
import { readDelivery } from "./delivery.ts";
import type { KeptDelivery } from "./delivery-store.ts";
import { type HoldOutcome, hold, type SendHold } from "./hold.ts";
import type { PresentedPayment } from "./payment-header.ts";
import { paymentId } from "./payment-info.ts";

export interface SaleParts extends DecisionParts {
  readonly client: Client;
  readonly send: SendHold;
}

/** A payment that matches the offer's terms and carries the payer's signature. */
export interface Purchase {
  readonly payment: PresentedPayment;
  /** Method and path with its query. */
  readonly resource: string;
  /** The merchant's handler; it runs once the payment is held, and answers instead of throwing. */
  readonly run: () => Promise<Response>;
}

export type Outcome =
  | { readonly kind: "delivered"; readonly id: Hex; readonly delivery: KeptDelivery; readonly isReplay: boolean }
  /** This payment buys nothing; the buyer has to sign a new one. */
  | { readonly kind: "payment_required"; readonly error: string }
  /** This payment bought something else, or what it bought is no longer available. */
  | { readonly kind: "conflict"; readonly error: string };

/** With less time left before anyone may refund it, a hold is not a payment: the buyer could get both. */
const LEAST_SECONDS_TO_DECIDE = 60;

/** What this process is selling right now, by payment id. */
const inFlight = new Map<Hex, Promise<Outcome>>();

/**
 * Sells one request: holds the payment, runs the handler once, stores its response, and has the arbiter decide. The
 * same payment again, concurrently or later, gets the same response.
 * @throws if it is unknown whether the payment is held, or if the store fails; the same request may be sent again
 */
export async function sell(parts: SaleParts, purchase: Purchase): Promise<Outcome> {
  const { escrow } = parts;
  const id = paymentId({ chainId: escrow.chainId, escrow: escrow.address }, purchase.payment.info);
  const running = inFlight.get(id);
  if (running !== undefined) {
    const outcome = await running;
    return outcome.kind === "delivered" ? replay(parts, purchase, { id, kept: outcome.delivery }) : outcome;
  }
  const selling = sellOnce(parts, purchase, id).finally(() => inFlight.delete(id));
  inFlight.set(id, selling);
  return selling;
}

async function sellOnce(parts: SaleParts, purchase: Purchase, id: Hex): Promise<Outcome> {
  const earlier = await parts.store.get(id);
  if (earlier !== null) return replay(parts, purchase, { id, kept: earlier });
  const { info, signature } = purchase.payment;
  const held = await hold(parts.client, parts.send, { info, signature, escrow: parts.escrow });
  if (held.kind !== "held") return unsold(held, id);
  if (held.refundableFrom - LEAST_SECONDS_TO_DECIDE <= Date.now() / 1000) {
    return { kind: "payment_required", error: tooLate(id, held.refundableFrom) };
  }
  const delivery = await readDelivery(await purchase.run());
  const made = {
    ...delivery,
    resource: purchase.resource,
    transaction: held.transaction,
    decision: "pending",
  } as const;
  const kept = await parts.store.keep(id, made);
  const decision = await decide(parts, { id, delivery: kept, authorizationExpiry: info.authorizationExpiry });
  return { kind: "delivered", id, delivery: { ...kept, decision }, isReplay: false };
}

async function replay(
  parts: SaleParts,
  purchase: Purchase,
  { id, kept }: { readonly id: Hex; readonly kept: KeptDelivery },
): Promise<Outcome> {
  if (kept.resource !== purchase.resource) {
    return { kind: "conflict", error: `Payment ${id} already bought ${kept.resource}.` };
  }
  const { authorizationExpiry } = purchase.payment.info;
  const decision =
    kept.decision === "pending" ? await decide(parts, { id, delivery: kept, authorizationExpiry }) : kept.decision;
  return { kind: "delivered", id, delivery: { ...kept, decision }, isReplay: true };
}

function unsold(outcome: Exclude<HoldOutcome, { kind: "held" }>, id: Hex): Outcome {
  switch (outcome.kind) {
    case "refused":
      return { kind: "payment_required", error: `The payment cannot be held: ${outcome.reason}.` };
    case "refunded":
      return { kind: "payment_required", error: `Payment ${id} was refunded to its payer; sign a new one.` };
    case "released":
      return { kind: "conflict", error: `Payment ${id} was released, and its response is no longer stored.` };
    default:
      return outcome satisfies never;
  }
}

const tooLate = (id: Hex, refundableFrom: number): string =>
  `Payment ${id} was held but not delivered in time. Anyone can refund it to its payer starting at ` +
  `${new Date(refundableFrom * 1000).toISOString()}. Sign a new one.`;
