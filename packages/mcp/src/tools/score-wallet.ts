import { z } from "zod";
import { maxPrice, wallet } from "../fields.ts";
import { PAID_OUTPUT } from "../paid-output.ts";
import { paidTool } from "../paid-tool.ts";
import { PRODUCTS } from "../products.ts";
import { checkedScores, SCORE } from "./score-record.ts";

export const scoreWallet = paidTool({
  name: "score_wallet",
  title: "Buy a wallet's risk score",
  description:
    "Buys a wallet's deterministic risk score, from 0 to 100, with its tier, points, and evidence. Recomputes the score from the facts that come with it before returning it.",
  input: z.strictObject({ wallet, max_price: maxPrice }),
  output: PAID_OUTPUT.extend({ score: SCORE.exactOptional() }),
  sells: [PRODUCTS.score],
  async run({ wallet: subject, max_price }, { shop, verifier }) {
    return shop.buy({ product: PRODUCTS.score, body: { wallet: subject }, maxPrice: max_price }, async (sale) => {
      const [score] = await checkedScores(sale, [subject], verifier);
      return { ...sale.paid, ...(score && { score }) };
    });
  },
});
