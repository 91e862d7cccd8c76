import { z } from "zod";
import { address, atomic, count, network, time, transactionHash, url, usd } from "../platform/http/schema.ts";
import type { purchasesDocument } from "./list-purchases.ts";

/** The body of a 402 that nothing can be paid for: its challenge is in `extensions` of `PAYMENT-REQUIRED`. */
export const SIGN_IN_REQUIRED = z
  .object({ x402Version: z.literal(1), error: z.string(), accepts: z.array(z.never()) })
  .meta({ id: "SignInRequired" });

const PURCHASE = z.object({
  resource: url.meta({ description: "What was paid for." }),
  amount: atomic,
  amount_usd: usd,
  pay_to: address,
  transaction: transactionHash,
  block: count,
  final: z.boolean(),
  explorer_url: url,
  received_at: time,
  payment_id: z.string().nullable().meta({
    description: "The payment identifier that the client sent; of one with more than 43 characters, its SHA-256.",
  }),
  receipt: z.object({ format: z.string(), signature: z.string() }).meta({
    description: "As in `PAYMENT-RESPONSE`: x402's extension `offer-receipt`.",
  }),
  record_url: url.nullable(),
  answer: z
    .object({ status: count, body: z.unknown() })
    .nullable()
    .meta({ description: "What the payment bought, as every retry of it gets it." }),
  answer_state: z.enum(["stored", "pending", "withheld"]).meta({
    description:
      "pending: it has settled, and its answer is not ready yet. withheld: an order of a test that may be running; its answer is shown from `answer_from` on.",
  }),
  answer_from: time.nullable(),
});

export const PURCHASES = z
  .object({
    wallet: address,
    network,
    purchases: z.array(PURCHASE),
    next: url.nullable().meta({ description: "The next page, which takes a sign-in of its own." }),
  })
  .meta({ id: "Purchases" }) satisfies z.ZodType<Awaited<ReturnType<typeof purchasesDocument>>>;
