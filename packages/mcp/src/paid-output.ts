import { z } from "zod";
import { formatUsd } from "./money.ts";
import { carriedBy, utcTime } from "./payment-state.ts";
import type { PendingPayment } from "./pending-payments.ts";

const usd = z.string().describe('US dollars, like "0.25".');

/** The output of every paid tool, in addition to the purchase. */
export const PAID_OUTPUT = z.object({
  status: z
    .enum(["paid", "pending", "payment_required", "not_played"])
    .describe(
      "pending: a payment was signed and its outcome is not known yet; call the tool again with the same arguments. payment_required: no purchase was made; see what_to_do. not_played: the agent must take this test itself.",
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
  authorization: z
    .object({ from: z.string(), nonce: z.string(), valid_before: z.string().describe("Unix seconds.") })
    .exactOptional()
    .describe("The signed authorization, which may still be charged: settlement_status returns its status."),
  what_to_do: z.string().exactOptional(),
});

export type PaidOutput = z.infer<typeof PAID_OUTPUT>;

/** The parts of an offer that are shown to people. Amounts in atomic units. */
type Priced = Pick<PendingPayment, "amount" | "payTo" | "network">;

export const toPay = ({ amount, payTo }: Pick<Priced, "amount" | "payTo">): string =>
  `${formatUsd(BigInt(amount))} USDC to ${payTo}`;

export const priceOf = ({ amount, payTo, network }: Priced): NonNullable<PaidOutput["price"]> => ({
  amount_usd: formatUsd(BigInt(amount)),
  amount_atomic: amount,
  asset: "USDC",
  network,
  pay_to: payTo,
});

export const AGAIN =
  "Call this tool again with the same arguments. It sends the same payment again, and signs no second one while the first can be charged.";

/** Tells the user how long a payment is open. */
export const openUntil = (payment: PendingPayment): string =>
  `It can settle in a block before ${utcTime(carriedBy(payment).validBefore)}, and counts as open until a final block shows that it did not; on Base that takes about 15 minutes more.`;

/** Returns a tool's output while the first payment is open, although the service has refused it. */
export const refusedOutput = (
  payment: PendingPayment,
  budget: NonNullable<PaidOutput["budget"]>,
  { refusal, why }: { readonly refusal: string; readonly why: string },
): PaidOutput => ({
  ...unknownYet(payment, budget),
  what_to_do: `A payment of ${toPay(payment)} was signed and may be charged, although ${refusal.replace(/\.?$/, ";")} ${why} No other one was signed. ${openUntil(payment)} ${AGAIN} Once the first can never be charged, the call signs another one.`,
});

/** Returns a tool's output while the status of its payment is unknown. */
export const pendingOutput = (
  payment: PendingPayment,
  budget: NonNullable<PaidOutput["budget"]>,
  reason: string,
): PaidOutput => ({
  ...unknownYet(payment, budget),
  what_to_do: `A payment of ${toPay(payment)} was signed and sent, and its outcome is not known yet: ${reason} ${AGAIN} It is kept on disk, so this server may be restarted in between.`,
});

function unknownYet(payment: PendingPayment, budget: NonNullable<PaidOutput["budget"]>) {
  const { from, nonce, validBefore } = carriedBy(payment);
  return {
    status: "pending" as const,
    price: priceOf(payment),
    budget,
    signed_at: payment.signedAt,
    authorization: { from, nonce, valid_before: String(validBefore) },
  };
}
