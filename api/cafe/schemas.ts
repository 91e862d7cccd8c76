import { z } from "zod";
import {
  address,
  atomic,
  count,
  network,
  networkKey,
  time,
  transactionHash,
  url,
  usd,
} from "../platform/http/schema.ts";
import { type cafeOverview, ITEMS, type Item, ROUND_RECEIPTS } from "./menu.ts";
import type { receipt } from "./receipt.ts";

export const CAFE = z
  .object({
    what: z.string(),
    network,
    network_key: networkKey,
    menu: z.array(
      z.object({
        item: z.enum(ITEMS),
        method: z.literal("POST"),
        url,
        price: usd,
        price_atomic: atomic,
        extra: z.string(),
      }),
    ),
    receipts_served: count,
    open_rounds: z.array(z.object({ nickname: z.string(), left: count })),
  })
  .meta({ id: "Cafe" }) satisfies z.ZodType<ReturnType<typeof cafeOverview>>;

const EXTRAS = {
  espresso: { ascii_art: z.string() },
  "flat-white": { fortune: z.string() },
  "the-good-stuff": { title: z.string() },
  "buy-a-round": { your_round: z.object({ nickname: z.string(), receipts: z.literal(ROUND_RECEIPTS) }) },
} as const satisfies Record<Item, Readonly<Record<string, z.ZodType>>>;

export const receiptSchema = (item: Item) =>
  z.object({
    receipt: z.string().regex(/^[0-9a-f]{16}$/),
    item: z.literal(item),
    price: usd,
    payer: address,
    network,
    transaction: transactionHash,
    explorer_url: url,
    served_at: time,
    ...EXTRAS[item],
    round: z
      .object({ by: z.string(), number: z.int().min(1).max(ROUND_RECEIPTS), of: z.literal(ROUND_RECEIPTS) })
      .exactOptional(),
    note: z.string(),
  }) satisfies z.ZodType<ReturnType<typeof receipt>>;
