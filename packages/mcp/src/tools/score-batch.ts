import { z } from "zod";
import { maxPrice, wallet } from "../fields.ts";
import { PAID_OUTPUT } from "../paid-output.ts";
import { paidTool } from "../paid-tool.ts";
import { PRODUCTS } from "../products.ts";
import { checkedScores, SCORE } from "./score-record.ts";

const MAX_WALLETS = 25;

const wallets = z
  .array(wallet)
  .min(1)
  .max(MAX_WALLETS)
  .refine((list) => new Set(list.map((one) => one.toLowerCase())).size === list.length, "expected different wallets")
  .describe("1 to 25 different wallets.");

export const scoreBatch = paidTool({
  name: "score_batch",
  title: "Buy risk scores of up to 25 wallets",
  description:
    "The risk scores of 1 to 25 wallets for one price; cheaper than score_wallet from 6 wallets on. Each is computed again here before it is returned.",
  input: z.strictObject({ wallets, max_price: maxPrice }),
  output: PAID_OUTPUT.extend({ scores: z.array(SCORE).exactOptional() }),
  sells: [PRODUCTS.batch],
  async run({ wallets: subjects, max_price }, { shop, verifier }) {
    const sale = await shop.buy({ product: PRODUCTS.batch, body: { wallets: subjects }, maxPrice: max_price });
    if ("unpaid" in sale) return sale.unpaid;
    return { ...sale.paid, scores: await checkedScores(sale, subjects, verifier) };
  },
});
