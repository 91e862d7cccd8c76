import { createHash } from "node:crypto";
import { z } from "zod";
import type { PaymentKey, Sale } from "../platform/http/route.ts";
import { formatUsd } from "../platform/money.ts";
import { explorerTransactionUrl, NETWORKS } from "../platform/networks.ts";
import { day } from "../platform/page/html.ts";
import type { Address } from "../platform/wallet.ts";
import { type Item, ROUND_RECEIPTS } from "./menu.ts";

const CUPS = [
  ["    ( (", "     ) )", "  ........", "  |      |]", "  \\      /", "   `----'"],
  ["     ~ ~ ~", "    _______", "   |       |_", "   | .402. | |", "   |       |_|", "   '-------'"],
  [
    "      )  (",
    "     (   ) )",
    "      ) ( (",
    "    _______)_",
    " .-'---------|",
    "( C|/\\/\\/\\/\\/|",
    " '-./\\/\\/\\/\\/|",
  ],
  ["    {", "  {   }", "   }_{ __{", "  (       )}", "  |`-...-'|.", "  |       | )", "   `-...-'"],
] as const;

const FORTUNES = [
  "The next 402 you meet will be a fair one.",
  "A price ceiling today spares an apology tomorrow.",
  "Someone far away is about to verify you.",
  "Read the recipient twice, sign once.",
  "Your nonce is unlike any other. So are you.",
  "Settled is settled. You may rest.",
  "A short window keeps the draft out.",
  "Patience: the block you wait for is two seconds away.",
  "An invoice without terms is only a wish.",
  "Someone will want a receipt, and you will have one.",
] as const;

const RANKS = [
  "Steward",
  "Keeper",
  "Warden",
  "Marshal",
  "Chancellor",
  "Navigator",
  "Cartographer",
  "Archivist",
] as const;
const REALMS = [
  "the Exact Amount",
  "Unspent Nonces",
  "the Short Window",
  "the Quiet Facilitator",
  "Six Decimals",
  "the Second Espresso",
  "Fair Prices",
  "the Final Block",
] as const;

/** Picks a value from a list, always the same one for the same seed. */
function pick<Value>(list: readonly Value[], seed: string): Value {
  const number = createHash("sha256").update(seed).digest().readUInt32BE(0);
  return list[number % list.length] as Value;
}

const cup = (receipt: string): string => pick(CUPS, `cup|${receipt}`).join("\n");

const fortune = (receipt: string): string => pick(FORTUNES, `fortune|${receipt}`);

/** A wallet keeps one title per day (UTC). */
const title = (wallet: Address, now: Date): string => {
  const seed = `${wallet}|${day(now)}`;
  return `${pick(RANKS, `rank|${seed}`)} of ${pick(REALMS, `realm|${seed}`)}`;
};

const MAX_NICKNAME = 32;

/** Letters, marks, numbers, punctuation, symbols, and single spaces. No character hides, reverses, or breaks a line. */
const NICKNAME = /^[\p{L}\p{M}\p{N}\p{P}\p{S}]+(?: [\p{L}\p{M}\p{N}\p{P}\p{S}]+)*$/u;

const nickname = z
  .string()
  .refine((text) => [...text].length <= MAX_NICKNAME, `expected at most ${MAX_NICKNAME} characters`)
  .refine((text) => NICKNAME.test(text), "expected visible characters separated by at most single spaces");

/** The body of an order. Only a round takes a nickname, and it is optional. */
export const ORDER = z
  .object({ nickname: nickname.optional() })
  .optional()
  .transform((order) => order ?? null);

export type Order = z.infer<typeof ORDER>;

/** 0x7099…79c8 */
const shortAddress = (address: Address): string => `${address.slice(0, 6)}…${address.slice(-4)}`;

/** Derives 16 hex digits from the authorization, so that a sale makes one receipt even if it runs again. */
export const receiptId = ({ network, asset, payer, nonce }: PaymentKey): string =>
  createHash("sha256").update(`receipt|${network}|${asset}|${payer}|${nonce}`).digest("hex").slice(0, 16);

/** The round that covers a receipt. */
export interface Toast {
  readonly nickname: string;
  /** The number of this receipt in the round, from 1. */
  readonly number: number;
}

export function receipt(
  item: Item,
  { payment, value, settlement, input }: Pick<Sale<Order>, "payment" | "value" | "settlement" | "input">,
  { toast, now }: { readonly toast: Toast | null; readonly now: Date },
) {
  const id = receiptId(payment);
  return {
    receipt: id,
    item,
    price: formatUsd(value),
    payer: payment.payer,
    network: payment.network,
    transaction: settlement.transaction,
    explorer_url: explorerTransactionUrl(payment.network, settlement.transaction),
    served_at: now.toISOString(),
    ...extraOf(item, id, { wallet: payment.payer, order: input, now }),
    ...(toast && { round: { by: toast.nickname, number: toast.number, of: ROUND_RECEIPTS } }),
    note: `Paid with ${NETWORKS[payment.network].money}.`,
  };
}

function extraOf(
  item: Item,
  id: string,
  { wallet, order, now }: { readonly wallet: Address; readonly order: Order; readonly now: Date },
): Readonly<Record<string, unknown>> {
  switch (item) {
    case "espresso":
      return { ascii_art: cup(id) };
    case "flat-white":
      return { fortune: fortune(id) };
    case "the-good-stuff":
      return { title: title(wallet, now) };
    case "buy-a-round":
      return { your_round: { nickname: nicknameOf(order, wallet), receipts: ROUND_RECEIPTS } };
    default:
      return item satisfies never;
  }
}

export const nicknameOf = (order: Order, wallet: Address): string => order?.nickname ?? shortAddress(wallet);
