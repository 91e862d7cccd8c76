import { z } from "zod";
import type { ExamReport } from "../../../packages/seller-check/src/exam/examine.ts";
import type { Level } from "../../../packages/seller-check/src/exam/level.ts";
import type { CheckResult } from "../../../packages/seller-check/src/exam/vocabulary.ts";
import { PASSING_CODE } from "../../certificates/index.ts";
import { address, url } from "../../platform/http/schema.ts";
import { formatUsd } from "../../platform/money.ts";
import { NETWORKS, TEST_NETWORK } from "../../platform/networks.ts";
import { evidenceOf, keptChecks } from "../evidence.ts";
import { checkDocument } from "../exam-document.ts";
import { EXAM_PRICE, RESULT_WITHIN_SECONDS } from "../products.ts";
import { exchangesOf } from "../published/evidence.ts";
import { EXCHANGE, type KeptExchange } from "../published/schemas.ts";
import type { ExaminedRequest, ExamOrder } from "../record.ts";
import { CHECK, examId, usd } from "../schemas.ts";

/** The network on which rehearsals are paid for and make their payments. */
export const REHEARSAL_NETWORK = TEST_NETWORK;

/** An ordered rehearsal. JSON. */
export interface RehearsalOrder extends ExaminedRequest, Pick<ExamOrder, "other" | "payTo"> {
  /** The path prefix under which the seller's file lets the buyer have it examined. */
  readonly prefix: string;
  /** In atomic units. */
  readonly amount: string;
}

/** The result of a rehearsal. JSON. */
export type RehearsalResult =
  | {
      readonly type: "complete";
      readonly level: Level;
      readonly checks: readonly CheckResult[];
      readonly exchanges: readonly KeptExchange[];
      /** In atomic units. */
      readonly spent: string;
    }
  | { readonly type: "interrupted"; readonly note: string };

export interface Rehearsal {
  readonly id: string;
  readonly order: RehearsalOrder;
  /** Null until it has ended. */
  readonly result: RehearsalResult | null;
}

export const INTERRUPTED = (note: string): RehearsalResult => ({ type: "interrupted", note });

/**
 * Returns the part of a report that is kept for its buyer. All of its payments are in test money, so none has to be
 * left out.
 */
export const resultOf = ({ level, results, exchanges, spent }: ExamReport): RehearsalResult => ({
  type: "complete",
  level,
  checks: keptChecks(results),
  exchanges: exchangesOf(evidenceOf({ exchanges, settlements: [] }, () => true)),
  spent: `${spent}`,
});

/** A complete program that passes the exam. */
export type PassingShop = z.infer<typeof PASSING_CODE>;

interface Shown {
  readonly baseUrl: string;
  readonly passingShop: PassingShop;
}

export function rehearsalDocument({ id, order, result }: Rehearsal, { baseUrl, passingShop }: Shown) {
  const common = {
    id,
    rehearsal: true as const,
    recorded: false as const,
    exam_url: `${baseUrl}/rehearsal/seller/${id}`,
    url: order.url,
    network: NETWORKS[REHEARSAL_NETWORK].id,
    pay_to: order.payTo,
    price: formatUsd(BigInt(order.amount)),
  };
  const again = { method: "POST" as const, url: `${baseUrl}/rehearsal/seller`, cost: formatUsd(EXAM_PRICE) };
  if (result === null)
    return { ...common, status: "incomplete" as const, result_within_seconds: RESULT_WITHIN_SECONDS };
  if (result.type === "interrupted") return { ...common, status: result.type, note: result.note, next: again };
  const isPassed = result.level === "full";
  return {
    ...common,
    status: result.type,
    level: result.level,
    spent: formatUsd(BigInt(result.spent)),
    checks: result.checks.map(checkDocument),
    exchanges: result.exchanges,
    next: isPassed ? { ...again, url: `${baseUrl}/test/seller` } : again,
    passing_code: isPassed ? null : passingShop,
  };
}

const NEXT = z.object({ method: z.literal("POST"), url, cost: usd });
const COMMON = {
  id: examId,
  rehearsal: z.literal(true),
  recorded: z.literal(false).meta({ description: "It is not published." }),
  exam_url: url.meta({ description: "Its result, kept for a day." }),
  url: z.string(),
  network: z.literal(REHEARSAL_NETWORK),
  pay_to: address,
  price: usd,
};

/** The response to an order. */
export const REHEARSAL_ORDERED = z.object({
  ...COMMON,
  status: z.literal("incomplete"),
  result_within_seconds: z.int(),
});

export const SELLER_REHEARSAL = z
  .discriminatedUnion("status", [
    REHEARSAL_ORDERED,
    z.object({ ...COMMON, status: z.literal("interrupted"), note: z.string(), next: NEXT }),
    z.object({
      ...COMMON,
      status: z.literal("complete"),
      level: z.enum(["full", "safe"]).nullable(),
      spent: usd,
      checks: z.array(CHECK),
      exchanges: z.array(EXCHANGE),
      next: NEXT.meta({ description: "The exam itself after the level full, otherwise another rehearsal." }),
      passing_code: PASSING_CODE.nullable(),
    }),
  ])
  .meta({ id: "SellerRehearsal", description: "How a rehearsal of the seller's exam ended. Nothing is recorded." });
