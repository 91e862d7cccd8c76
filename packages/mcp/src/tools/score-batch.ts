import { z } from "zod";
import { maxPrice, wallet } from "../fields.ts";
import { LIMITS } from "../limits.ts";
import { PAID_OUTPUT } from "../paid-output.ts";
import { paidTool } from "../paid-tool.ts";
import { PRODUCTS } from "../products.ts";
import { checkedScores, SCORE } from "./score-record.ts";

const { batchWallets: MOST } = LIMITS;
/** From this number of wallets, a batch costs less than single scores. */
const CHEAPER_FROM = PRODUCTS.batch.price / PRODUCTS.score.price + 1n;

const wallets = z
  .array(wallet)
  .min(1)
  .max(MOST)
  .refine((list) => new Set(list.map((one) => one.toLowerCase())).size === list.length, "expected different wallets")
  .describe(`1 to ${MOST} different wallets.`);

export const scoreBatch = paidTool({
  name: "score_batch",
  title: `Buy risk scores of up to ${MOST} wallets`,
  description: `Buys the risk scores of 1 to ${MOST} wallets for a single price, which is cheaper than score_wallet for ${CHEAPER_FROM} or more wallets. Recomputes each score before returning it.`,
  input: z.strictObject({ wallets, max_price: maxPrice }),
  output: PAID_OUTPUT.extend({ scores: z.array(SCORE).exactOptional() }),
  sells: [PRODUCTS.batch],
  async run({ wallets: subjects, max_price }, { shop, verifier }) {
    const purchase = { product: PRODUCTS.batch, body: { wallets: subjects }, maxPrice: max_price };
    return shop.buy(purchase, async (sale) => ({
      ...sale.paid,
      scores: await checkedScores(sale, subjects, verifier),
    }));
  },
});
