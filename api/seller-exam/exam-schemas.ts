import { z } from "zod";
import { CHECKS } from "../../packages/seller-check/src/exam/vocabulary.ts";

const usd = z.string().regex(/^\d+\.\d{2,6}$/);
const address = z.string().regex(/^0x[0-9a-f]{40}$/);
const time = z.iso.datetime();
const mode = z.enum(["paid", "passive"]).describe("`passive`: without consent, only unpaid requests.");
export const examId = z.string().regex(/^[0-9a-f]{32}$/);
const id = examId;

const links = {
  exam_url: z.url().describe("Its status."),
  cert_url: z.url().describe("Its record, also as a page."),
  evidence_url: z.url().describe("Every request and answer, once it has ended; 404 until then."),
};

/** The answer to a bought exam. */
export const ORDERED = z.object({
  id,
  status: z.literal("incomplete"),
  mode,
  ...links,
  result_within_seconds: z.int(),
  origin: z.string(),
  pay_to: address,
  price: usd,
  ceiling: usd,
});

const check = z.object({
  check: z.enum(CHECKS),
  outcome: z.enum(["pass", "fail", "not_applicable"]),
  reason: z.string().nullable(),
  findings: z.array(
    z.object({
      code: z.string().optional(),
      statement: z.string(),
      holds: z.boolean(),
      exchanges: z.array(z.int()),
    }),
  ),
});

/** The status of an order. Members from `certified` on are there once it has ended. */
export const EXAM_STATUS = z.object({
  id,
  ...links,
  mode,
  origin: z.string(),
  request: z.object({
    url: z.string(),
    method: z.string(),
    body: z.string().nullable(),
    content_type: z.string(),
    other: z
      .string()
      .nullable()
      .describe("Another route, at which a payment of this one was to be presented; null if none was named."),
  }),
  pay_to: address,
  price: usd,
  consent: z
    .union([
      z.object({ kind: z.literal("file"), url: z.string(), text: z.string() }),
      z.object({ kind: z.literal("signature"), text: z.string(), signature: z.string(), expires: z.string() }),
    ])
    .nullable(),
  ordered_at: time,
  paid: z.object({ network: z.string(), payer: address, transaction: z.string() }),
  again_of: id.nullable().describe("The corrected exam that it repeats free of charge, bought with the same payment."),
  status: z.enum(["incomplete", "complete", "interrupted"]),
  result_within_seconds: z.int().optional(),
  certified: z.boolean().optional(),
  level: z.enum(["full", "safe"]).nullable().optional(),
  note: z.string().nullable().optional(),
  checks: z.array(check).optional(),
  spent: usd.nullable().optional(),
  runs: z.int().optional(),
  began_at: time.optional(),
  ended_at: time.optional(),
  valid_until: time.nullable().optional(),
  correction: z.object({ reason: z.string(), at: time }).nullable().optional(),
  evidence_sha256: z.string().optional(),
  refund: z
    .object({ transaction: z.string(), block: z.int() })
    .nullable()
    .optional()
    .describe("Where the buyer of an exam that we broke was paid back, once that is final."),
});

const texts = z.record(z.string(), z.string());

/** What is known before an exam, and about this seller if one was named. */
export const EXAM_TERMS = z.object({
  price: usd,
  ceiling: usd,
  result_within_seconds: z.int(),
  payments: z.int(),
  runs: z.int(),
  cooldown_minutes: z.int(),
  checks: z.array(z.object({ check: z.enum(CHECKS), passes_if: z.string() })),
  levels: texts,
  refusals: texts,
  without_consent: z.string(),
  for_sale: z.boolean(),
  seller: z
    .object({
      url: z.string(),
      refused: z.object({ code: z.string(), detail: z.string() }).nullable(),
      not_now: z.string().nullable(),
      origin: z.string(),
      pay_to: address.optional(),
      price: usd.optional(),
      mode: mode.optional(),
      consent: z
        .object({
          file: z.object({ url: z.string(), line: z.string() }),
          signature: z.object({ wallet: address, text: z.string(), expires: z.string() }),
        })
        .optional(),
    })
    .optional(),
});
