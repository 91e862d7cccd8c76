import { z } from "zod";
import { CAPABILITY_MENU, capability, product } from "../certificates/index.ts";
import { address, atomic, count, day, network, networkKey, SERVICE, time, url, usd } from "../platform/http/schema.ts";
import { origin, PATH_PREFIX } from "../sellers/index.ts";
import { type boardDocument, MAX_LIMIT, MINIMUM_WALLETS, SELLER, type sellerBoardDocument } from "./board.ts";
import { type statisticsDocument, WINDOW_DAYS } from "./statistics.ts";

export const limit = z.int().min(1).max(MAX_LIMIT);

const PAGE = {
  service: SERVICE,
  certified_means: z.string(),
  limit,
  next: url.nullable().meta({ description: "The next page, or null on the last one." }),
};
const ROW = { level: z.string(), issued_at: time, valid_until: time, cert_url: url, badge_url: url, verify_url: url };

export const BOARD = z
  .object({
    ...PAGE,
    capability: capability.nullable(),
    agents: z.array(z.object({ wallet: address, capabilities: z.array(capability), product, ...ROW })),
  })
  .meta({ id: "Board" }) satisfies z.ZodType<ReturnType<typeof boardDocument>>;

export const SELLER_BOARD = z
  .object({
    ...PAGE,
    capability: z.literal(SELLER),
    sellers: z.array(z.object({ origin, path_prefix: PATH_PREFIX, pay_to: address, passing_requests: count, ...ROW })),
  })
  .meta({ id: "SellerBoard" }) satisfies z.ZodType<ReturnType<typeof sellerBoardDocument>>;

export const listed = z.enum([...CAPABILITY_MENU, SELLER]);

/** A figure, or null if it is withheld. */
const figure = count.nullable();

export const STATISTICS = z
  .object({
    service: SERVICE,
    counted_at: time,
    anonymity: z.object({ minimum_wallets: z.literal(MINIMUM_WALLETS), note: z.string() }),
    wallets: z.object({ tested: count, certified_now: count }),
    certificates: count.meta({ description: "All certificates ever issued." }),
    products: z.array(
      z.object({
        product: z.string(),
        title: z.string(),
        certificates: figure,
        passed: figure,
        failed: figure,
        failure_share: z.number().min(0).max(1).nullable(),
      }),
    ),
    sellers: z
      .object({
        tested: count,
        certified_now: count,
        certificates: count,
        passed: figure,
        failed: figure,
      })
      .meta({ description: "Published exams of sellers, counted by origin and path prefix." }),
    payments: z.array(
      z.object({
        network,
        network_key: networkKey,
        asset: z.literal("USDC"),
        settled: count,
        volume_atomic: atomic,
        volume: usd,
      }),
    ),
    window_days: z.literal(WINDOW_DAYS),
    days: z.array(z.object({ day, certificates: figure })),
  })
  .meta({ id: "Statistics" }) satisfies z.ZodType<ReturnType<typeof statisticsDocument>>;
