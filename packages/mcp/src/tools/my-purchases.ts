import type { LocalAccount } from "viem";
import { z } from "zod";
import type { ToolFacts } from "../free-tool.ts";
import { parseJson, type Service, ServiceError } from "../service.ts";
import { sendSignedIn } from "../sign-in.ts";

export interface WalletParts {
  readonly service: Service;
  /** Null without a key. */
  readonly payer: LocalAccount | null;
}

const INPUT = z.strictObject({
  transaction: z
    .string()
    .regex(/^0x[0-9a-fA-F]{64}$/, "expected a transaction hash: 0x and 64 hex digits")
    .optional()
    .describe("Only the purchases of this transaction, with the answers in full."),
  cursor: z.string().max(200).optional().describe("From `next_cursor` of the previous page."),
});

const PURCHASE = z.looseObject({
  resource: z.string(),
  amount_usd: z.string(),
  transaction: z.string(),
  received_at: z.string(),
  answer: z.looseObject({ status: z.number() }).nullable(),
  answer_state: z.string(),
});

const PAGE = z.object({ wallet: z.string(), purchases: z.array(PURCHASE), next: z.string().nullable() });

const OUTPUT = z.object({
  wallet: z.string(),
  purchases: z.array(PURCHASE),
  next_cursor: z.string().nullable().describe("For the next page; null after the last."),
});

const NO_KEY =
  "This server has no key, so it cannot sign in. Ask the user to set PAYER_PRIVATE_KEY to the key of the wallet that paid, and to restart it.";

const FACTS = {
  name: "my_purchases",
  title: "List my purchases",
  description:
    "Lists the purchases of the user's wallet from this service on Base, newest first. Signs in with the wallet's key, which pays nothing. Name a transaction to get its answer in full. Call this when the answer to a payment was lost, before anything is bought again. Free.",
  input: INPUT,
  output: OUTPUT,
} satisfies ToolFacts;

/** A tool that needs the wallet's key and costs nothing. */
export const MY_PURCHASES = {
  ...FACTS,
  async run(given: Record<string, unknown>, { service, payer }: WalletParts): Promise<z.infer<typeof OUTPUT>> {
    const { transaction, cursor } = given as z.infer<typeof INPUT>;
    if (payer === null) throw new ServiceError(NO_KEY);
    const query = new URLSearchParams({ ...(transaction && { transaction }), ...(cursor && { cursor }) });
    const path = `/purchases${query.size === 0 ? "" : `?${query}`}`;
    const page = PAGE.safeParse(parseJson(await sendSignedIn(service, payer, path), path));
    if (!page.success) throw new ServiceError(`${path} did not return a page of purchases.`);
    const { wallet, purchases, next } = page.data;
    if (wallet !== payer.address.toLowerCase()) throw new ServiceError(`${path} returned another wallet's purchases.`);
    return {
      wallet,
      purchases: transaction === undefined ? purchases.map(inShort) : purchases,
      next_cursor: next === null ? null : new URL(next).searchParams.get("cursor"),
    };
  },
};

/** Shortened, because the full answers of a whole page are more than an agent wants to read. */
const inShort = ({ answer, ...purchase }: z.infer<typeof PURCHASE>): z.infer<typeof PURCHASE> => ({
  ...purchase,
  answer: answer === null ? null : { status: answer.status },
});
