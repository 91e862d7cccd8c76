import { z } from "zod";
import { formatUsd } from "./money.ts";
import type { PendingPayment } from "./pending-payments.ts";

const usd = z.string().describe('US dollars, like "0.25".');

/** What every paid tool returns besides the purchase. */
export const PAID_OUTPUT = z.object({
  status: z
    .enum(["paid", "pending", "payment_required", "not_played"])
    .describe(
      "pending: a payment was signed and its outcome is not known yet; call the tool again with the same arguments. payment_required: nothing was bought; see what_to_do. not_played: the agent must take this test itself.",
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
  signed_at: z
    .string()
    .exactOptional()
    .describe("An earlier call signed the payment, at this time, and got no answer; this call signed nothing."),
  what_to_do: z.string().exactOptional(),
});

export type PaidOutput = z.infer<typeof PAID_OUTPUT>;

/** The part of an offer that people are told. Amounts in atomic units. */
type Priced = Pick<PendingPayment, "amount" | "payTo" | "network">;

export const toPay = ({ amount, payTo }: Pick<Priced, "amount" | "payTo">): string =>
  `${formatUsd(BigInt(amount))} USD to ${payTo}`;

export const priceOf = ({ amount, payTo, network }: Priced): NonNullable<PaidOutput["price"]> => ({
  amount_usd: formatUsd(BigInt(amount)),
  amount_atomic: amount,
  asset: "USDC",
  network,
  pay_to: payTo,
});

export const AGAIN =
  "Call this tool again with the same arguments: it sends the same payment again and never signs a second one.";

/** What a tool answers while nobody knows what became of its payment. */
export const pendingOutput = (
  payment: PendingPayment,
  budget: NonNullable<PaidOutput["budget"]>,
  reason: string,
): PaidOutput => ({
  status: "pending",
  price: priceOf(payment),
  budget,
  signed_at: payment.signedAt,
  what_to_do: `A payment of ${toPay(payment)} was signed and sent, and its outcome is not known yet: ${reason} ${AGAIN} It is kept on disk, so this server may be restarted in between.`,
});
