import type { Client, Hex } from "viem";
import { type DecisionParts, decide } from "./decide.ts";
import { readDelivery } from "./delivery.ts";
import { type HoldOutcome, hold, type SendHold } from "./hold.ts";
import { claimDelivery, whileLeased } from "./only-once.ts";
import { paymentId } from "./payment-info.ts";
import { readPayment } from "./payment-status.ts";
import { ruleOf } from "./rules.ts";
import { type Payment, rulesOf } from "./schemes.ts";
import type { KeptDelivery } from "./stores/delivery-store.ts";
import { placeOf } from "./terms.ts";
import {
  LEAST_SECONDS_TO_RELEASE,
  latestTime,
  leastSecondsToDecide,
  readTimeLeft,
  secondsLeft,
  type TimeLeft,
} from "./time-left.ts";
import { asDelivery } from "./validate.ts";

export interface SaleParts extends DecisionParts {
  readonly client: Client;
  readonly send: SendHold;
  /** The number of seconds of someone else's hold that must be left when the handler starts. */
  readonly leastSecondsLeft: number;
}

/** A payment that matches the offer's terms and contains the payer's signature. */
export interface Purchase {
  readonly payment: Payment;
  /** Method and path with its query. */
  readonly resource: string;
  /** Returns the response to input that the merchant refuses; null if it accepts it. */
  readonly validate: () => Promise<Response | null>;
  /**
   * The merchant's handler; it runs once the payment is held, and returns a response instead of throwing. It gets the
   * payment's id.
   */
  readonly run: (id: Hex) => Promise<Response>;
}

export interface Delivered {
  readonly type: "delivered";
  readonly id: Hex;
  readonly delivery: KeptDelivery;
  readonly isReplay: boolean;
}

export type Outcome =
  | Delivered
  /**
   * The arbiter refunds a response that looks like goods: the buyer gets its money back, and nothing of the response.
   */
  | (Omit<Delivered, "type"> & { readonly type: "withheld" })
  | Unsold;

/** The outcome of a payment that gets no goods. */
export type Unsold =
  /** This payment buys nothing; the buyer has to sign a new one. */
  | { readonly type: "payment_required"; readonly error: string }
  /** This payment bought something else, or its response is no longer available. */
  | { readonly type: "conflict"; readonly error: string }
  /** The response exists, but it is not certain yet that the merchant gets the money. */
  | { readonly type: "not_yet"; readonly error: string }
  /** The merchant refuses the input, and nothing was held for it. */
  | { readonly type: "invalid"; readonly refusal: Response };

interface Made {
  readonly id: Hex;
  readonly kept: KeptDelivery;
  readonly isReplay: boolean;
}

/** The sales in progress in this process, by payment id. */
const inFlight = new Map<Hex, Promise<Outcome>>();

/**
 * Sells one request: holds the payment, runs the handler once, stores its response, and has the arbiter decide. The
 * same payment again, concurrently or later, gets the same response.
 * @throws if it is unknown whether the payment is held, or if the store fails; the same request may be sent again
 */
export async function sell(parts: SaleParts, purchase: Purchase): Promise<Outcome> {
  const { escrow } = parts;
  const id = paymentId(placeOf(escrow), purchase.payment.info);
  const running = inFlight.get(id);
  if (running !== undefined) {
    const outcome = await running;
    if ("delivery" in outcome) return replay(parts, purchase, { id, kept: outcome.delivery });
    // The refusal was of the other request's input.
    return outcome.type === "invalid" ? sell(parts, purchase) : outcome;
  }
  const selling = sellOnce(parts, purchase, id).finally(() => inFlight.delete(id));
  inFlight.set(id, selling);
  return selling;
}

async function sellOnce(parts: SaleParts, purchase: Purchase, id: Hex): Promise<Outcome> {
  const earlier = await parts.store.get(id);
  if (earlier !== null) return replay(parts, purchase, { id, kept: earlier });
  const refusal = await purchase.validate();
  if (refusal !== null) {
    const { status } = await readPayment(parts.client, parts.escrow.address, id);
    if (status === "none") return { type: "invalid", refusal };
  }
  const { info, signature } = purchase.payment;
  const held = await hold(parts.client, parts.send, { info, signature, escrow: parts.escrow });
  if (held.type !== "held") return unlessSold(parts, purchase, { id, unsold: unsold(parts, held, id) });
  if (!held.isOwn && secondsLeft(held, await latestTime(parts.client)) < parts.leastSecondsLeft) {
    const late: Outcome = { type: "payment_required", error: tooLate(id, held.refundableFrom) };
    return unlessSold(parts, purchase, { id, unsold: late });
  }
  // It is already held, so the refusal goes to the arbiter, and the buyer gets its money back immediately.
  const run = refusal === null ? purchase.run : () => asDelivery(refusal);
  return deliver(parts, { ...purchase, run }, { id, transaction: held.transaction });
}

/** Another process may have sold it since the first look. Its response is stored before the payment is released. */
async function unlessSold(
  parts: SaleParts,
  purchase: Purchase,
  { id, unsold }: { readonly id: Hex; readonly unsold: Outcome },
): Promise<Outcome> {
  const kept = await parts.store.get(id);
  return kept === null ? unsold : replay(parts, purchase, { id, kept });
}

/** Makes the delivery of a held payment, unless another request did, or is doing so. */
async function deliver(
  parts: SaleParts,
  purchase: Purchase,
  { id, transaction }: { readonly id: Hex; readonly transaction: Hex },
): Promise<Outcome> {
  const { store, log } = parts;
  const { resource, run } = purchase;
  const turn = await claimDelivery(store, id, resource);
  switch (turn.type) {
    case "made":
      return replay(parts, purchase, { id, kept: turn.kept });
    case "other":
      return { type: "conflict", error: boughtOther(id, turn.resource) };
    case "busy":
      return { type: "not_yet", error: busy(id) };
    case "ours":
      break;
    default:
      return turn satisfies never;
  }
  const delivery = await whileLeased(store, { id, lease: turn.lease, log }, async () => readDelivery(await run(id)));
  const kept = await store.keep(id, { ...delivery, resource, transaction, decision: "pending" });
  return handOver(parts, purchase, { id, kept, isReplay: false });
}

async function replay(
  parts: SaleParts,
  purchase: Purchase,
  { id, kept }: { readonly id: Hex; readonly kept: KeptDelivery },
): Promise<Outcome> {
  if (kept.resource !== purchase.resource) {
    return { type: "conflict", error: boughtOther(id, kept.resource) };
  }
  return handOver(parts, purchase, { id, kept, isReplay: true });
}

/** Returns a response once the arbiter has it, and only if the merchant gets the money for it. */
async function handOver(parts: SaleParts, purchase: Purchase, { id, kept, isReplay }: Made): Promise<Outcome> {
  const { info, contest } = purchase.payment;
  const decision =
    kept.decision === "pending" ? await decide(parts, { id, delivery: kept, info, contest }) : kept.decision;
  if (decision === "ended") return { type: "payment_required", error: over(id) };
  if (decision === "refused") return { type: "not_yet", error: undecided(id) };
  const delivered = { type: "delivered", id, delivery: { ...kept, decision }, isReplay } as const;
  // Buyers can shape a handler's response: an `error` among the goods would get them both the goods and the refund.
  if (decision === "refund") return isError(kept) ? delivered : { ...delivered, type: "withheld" };
  if (decision === "pending" && !isError(kept) && ruleOf(kept)?.decision !== "release")
    return { type: "not_yet", error: keptBack(id) };
  return unlessEnded(delivered, await lookAgain(parts, purchase, id), leastSecondsToDecide(contest));
}

const isError = ({ status }: KeptDelivery): boolean => status >= 400;

function unlessEnded(delivered: Delivered, { status, secondsLeft }: TimeLeft, leastToDecide: number): Outcome {
  const { id, delivery } = delivered;
  const least = delivery.decision === "pending" ? leastToDecide : LEAST_SECONDS_TO_RELEASE;
  switch (status) {
    case "released":
      return delivered;
    case "held":
      return secondsLeft >= least ? delivered : { type: "not_yet", error: notYet(id) };
    case "refunded":
      return { type: "payment_required", error: over(id) };
    case "none":
      return { type: "not_yet", error: gone(id) };
    default:
      return status satisfies never;
  }
}

const LOOKS = 5;

/** Reads the hold right before its response leaves, because the handler may have taken long. */
async function lookAgain(parts: SaleParts, { payment }: Purchase, id: Hex): Promise<TimeLeft> {
  const { client, escrow, send } = parts;
  for (let look = 0; look < LOOKS; look += 1) {
    const seen = await readTimeLeft(client, escrow.address, id);
    if (seen.status !== "none") return seen;
    // This node lags behind the one that showed the hold.
    await new Promise((resolve) => setTimeout(resolve, 100 * 2 ** look));
  }
  // A reorganization removed the hold; the same authorization creates it again.
  await hold(client, send, { info: payment.info, signature: payment.signature, escrow });
  return readTimeLeft(client, escrow.address, id);
}

function unsold({ escrow }: SaleParts, outcome: Exclude<HoldOutcome, { type: "held" }>, id: Hex): Outcome {
  switch (outcome.type) {
    case "refused":
      return { type: "payment_required", error: rulesOf(escrow).notHeld(outcome.why) };
    case "refunded":
      return { type: "payment_required", error: `Payment ${id} was refunded to its payer; sign a new one.` };
    case "released":
      return { type: "conflict", error: `Payment ${id} was released, and its response is no longer stored.` };
    default:
      return outcome satisfies never;
  }
}

const tooLate = (id: Hex, refundableFrom: number): string =>
  `Payment ${id} was held earlier, and too little time is left to deliver. Anyone can refund it to its payer starting ` +
  `at ${new Date(refundableFrom * 1000).toISOString()}. Sign a new one.`;

const boughtOther = (id: Hex, resource: string): string => `Payment ${id} already bought ${resource}.`;

const busy = (id: Hex): string =>
  `The response for payment ${id} is still being made. Do not sign again; send the same header again.`;

const over = (id: Hex): string =>
  `The hold of payment ${id} ended before the response was ready; the payer gets the money back. Sign a new one.`;

const keptBack = (id: Hex): string =>
  `The arbiter has not decided payment ${id} yet, and may refund it for its response, which is kept back until then. Do ` +
  "not sign again; send the same header again.";

const undecided = (id: Hex): string =>
  `The arbiter refuses to decide payment ${id} now, so its response is kept back. Do not sign again; send the same ` +
  "header again. From 30 minutes after the hold anyone can refund it.";

const notYet = (id: Hex): string =>
  `Payment ${id} is almost refundable, and its release is not on the chain yet. Do not sign again; send the same ` +
  "header again.";

const gone = (id: Hex): string =>
  `The hold of payment ${id} is no longer on the chain. Do not sign again; send the same header again.`;
