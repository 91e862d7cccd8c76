import { z } from "zod";
import { address, atomic, count, network, time, transactionHash, url, usd } from "../platform/http/schema.ts";
import type { purchasesDocument } from "./list-purchases.ts";

/** The body of a 402 that asks to sign in. Its challenge is in `extensions` of `PAYMENT-REQUIRED`. */
export const SIGN_IN_REQUIRED = z
  .object({ x402Version: z.literal(1), error: z.string(), accepts: z.array(z.never()) })
  .meta({ id: "SignInRequired" });

const PURCHASE = z.object({
  resource: url.meta({ description: "The URL that was paid for." }),
  amount: atomic,
  amount_usd: usd,
  pay_to: address,
  transaction: transactionHash,
  block: count,
  final: z.boolean(),
  explorer_url: url,
  received_at: time,
  payment_id: z.string().nullable().meta({
    description: "The payment identifier that the client sent, or its SHA-256 if it has more than 43 characters.",
  }),
  receipt: z.object({ format: z.string(), signature: z.string() }).meta({
    description: "The receipt of x402's extension `offer-receipt`, as in `PAYMENT-RESPONSE`.",
  }),
  record_url: url.nullable(),
  answer: z
    .object({ status: count, body: z.unknown() })
    .nullable()
    .meta({ description: "The response to the payment and to every retry of it." }),
  answer_state: z.enum(["stored", "pending", "withheld"]).meta({
    description:
      "`pending`: the payment has settled, and its response is not ready yet. `withheld`: an order of a test that may be running; its response is shown from `answer_from` on.",
  }),
  answer_from: time.nullable(),
});

export const PURCHASES = z
  .object({
    wallet: address,
    network,
    purchases: z.array(PURCHASE),
    next: url.nullable().meta({ description: "The next page, which takes another sign-in." }),
  })
  .meta({ id: "Purchases" }) satisfies z.ZodType<Awaited<ReturnType<typeof purchasesDocument>>>;
