import { z } from "zod";
import { replayScores } from "../../../verifier/src/index.ts";
import type { Bought } from "../bought.ts";
import { maxPrice, wallet } from "../fields.ts";
import { PAID_OUTPUT } from "../paid-output.ts";
import { paidTool } from "../paid-tool.ts";
import { LIMITS, PRODUCTS } from "../products.ts";

/** The risk score record. */
const SCORE = z.looseObject({
  wallet,
  score: z.int().min(0).max(100),
  tier: z.string().describe("A to F, or unrated."),
  components: z.record(z.string(), z.looseObject({ points: z.int(), max: z.int() })),
  flags: z.array(z.string()),
  evidence: z.array(z.looseObject({})),
  inputs_sha256: z.string(),
});

type Score = z.infer<typeof SCORE>;

export const scoreWallet = paidTool({
  name: "score_wallet",
  title: "Buy a wallet's risk score",
  description:
    "Buys a wallet's deterministic risk score, from 0 to 100, with its tier, points, and evidence. Recomputes the score from the facts that come with it before returning it.",
  input: z.strictObject({ wallet, max_price: maxPrice }),
  output: PAID_OUTPUT.extend({ score: SCORE.exactOptional() }),
  sells: [PRODUCTS.score],
  async run({ wallet: subject, max_price }, { shop }) {
    return shop.buy({ product: PRODUCTS.score, body: { wallet: subject }, maxPrice: max_price }, async (sale) => {
      const [score] = await checkedScores(sale, [subject]);
      return { ...sale.paid, ...(score && { score }) };
    });
  },
});

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
  async run({ wallets: subjects, max_price }, { shop }) {
    const purchase = { product: PRODUCTS.batch, body: { wallets: subjects }, maxPrice: max_price };
    return shop.buy(purchase, async (sale) => ({
      ...sale.paid,
      scores: await checkedScores(sale, subjects),
    }));
  },
});

/** Returns the records of these wallets, recomputed from the facts they carry. @throws UntrustedAnswer */
async function checkedScores(bought: Bought, wallets: readonly string[]): Promise<Score[]> {
  const parsed = z.array(SCORE).safeParse([bought.document].flat());
  if (!parsed.success) throw bought.refuse("it contains no score records.");
  const asked = wallets.map((one) => one.toLowerCase()).join();
  if (parsed.data.map((one) => one.wallet.toLowerCase()).join() !== asked)
    throw bought.refuse("its records are not for the requested wallets in the requested order.");
  const replays = await replayScores(bought.text).catch((error: Error) => {
    throw bought.refuse(`a record cannot be recomputed: ${error.message}`);
  });
  const wrong = replays.flatMap(({ differences }) => differences.map(({ path }) => path));
  if (wrong.length > 0)
    throw bought.refuse(`a record's facts give different values for ${wrong.slice(0, 5).join(", ")}.`);
  return parsed.data;
}
