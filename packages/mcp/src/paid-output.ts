import { z } from "zod";

const usd = z.string().describe('US dollars, like "0.25".');

/** What every paid tool returns besides the purchase. */
export const PAID_OUTPUT = z.object({
  status: z
    .enum(["paid", "payment_required", "not_played"])
    .describe(
      "payment_required: nothing was bought; see what_to_do. not_played: the agent must take this test itself.",
    ),
  price: z
    .object({
      amount_usd: usd,
      amount_atomic: z.string(),
      asset: z.literal("USDC"),
      network: z.string(),
      pay_to: z.string(),
    })
    .exactOptional(),
  budget: z.object({ limit_usd: usd, spent_usd: usd }).exactOptional(),
  settlement: z.object({ transaction: z.string(), network: z.string(), payer: z.string() }).exactOptional(),
  what_to_do: z.string().exactOptional(),
});

export type PaidOutput = z.infer<typeof PAID_OUTPUT>;
