import { z } from "zod";
import {
  address,
  atomic,
  count,
  mixedCaseAddress,
  network,
  networkKey,
  transactionHash,
  url,
  usd,
} from "../platform/http/schema.ts";
import type { receiptDocument } from "./receipt.ts";

/** The extension of a 402 that explains why it was sent. */
const DIAGNOSTIC = z
  .object({
    code: z.string().meta({
      description:
        "x402's or the scheme's error code, such as `insufficient_funds`; for a body that would be refused, its problem's.",
    }),
    retry: z.enum(["never", "same", "new"]).meta({
      description:
        "`same`: send the same request again. `new`: sign again. `never`: the request itself, or its payer, has to change.",
    }),
    after: count.exactOptional().meta({ description: "The seconds to wait first." }),
    errors: z
      .array(z.object({ path: z.string(), message: z.string(), rule: count.exactOptional() }))
      .exactOptional()
      .meta({ description: "Errors in the body. The header omits them if they do not fit." }),
  })
  .meta({ id: "Diagnostic" });

export type Diagnostic = z.infer<typeof DIAGNOSTIC>;

/**
 * The body of a 402: the terms in x402 version 1. Version 2 is in the `PAYMENT-REQUIRED` header, and its signed offers
 * are in the body if they would make the header too long.
 */
export const PAYMENT_REQUIRED = z
  .object({
    x402Version: z.literal(1),
    error: z.string(),
    accepts: z.array(
      z.object({
        scheme: z.literal("exact"),
        network: networkKey,
        maxAmountRequired: atomic,
        resource: url,
        description: z.string(),
        mimeType: z.string(),
        payTo: mixedCaseAddress,
        maxTimeoutSeconds: count,
        asset: mixedCaseAddress,
        outputSchema: z.looseObject({}),
        extra: z.object({ name: z.string(), version: z.string() }),
      }),
    ),
    extensions: z.looseObject({ diagnostic: DIAGNOSTIC.optional() }).optional().meta({
      description:
        "Why a payment or a body is refused, as in PAYMENT-REQUIRED, and the signed offers if that has no room for them.",
    }),
  })
  .meta({ id: "PaymentRequired" });

/** The purchases that a transaction settled. */
export const RECEIPT = z
  .object({
    transaction: transactionHash,
    network,
    block: count,
    final: z.boolean(),
    explorer_url: url,
    purchases: z.array(
      z.object({
        payer: address,
        pay_to: address,
        amount: atomic,
        amount_usd: usd,
        resource: url,
        record_url: url.nullable(),
      }),
    ),
  })
  .meta({ id: "Receipt" }) satisfies z.ZodType<ReturnType<typeof receiptDocument>>;
