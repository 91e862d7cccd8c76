import { z } from "zod";
import { CHECKS } from "../../packages/seller-check/src/exam/vocabulary.ts";

export const usd = z.string().regex(/^\d+\.\d{2,6}$/);
const address = z.string().regex(/^0x[0-9a-f]{40}$/);
const time = z.iso.datetime();
export const examId = z.string().regex(/^[0-9a-f]{32}$/);
const id = examId;

/** The subject of a record. */
export const PATH_PREFIX = z.string().describe("Ends with a slash: the paths under it; `/` is the whole origin.");

/** An examined request as it is published: its query and its body appear only as digests. */
export const EXAMINED_REQUEST = z.object({
  method: z.string(),
  url: z.string().describe("Without its query."),
  query_sha256: z.string().nullable(),
  body_sha256: z.string().nullable(),
  content_type: z.string(),
  other: z
    .string()
    .nullable()
    .describe("Another route, where a payment for this one was to be presented; null if none was named."),
});

export const CONSENT_LINE = z
  .object({
    kind: z.literal("file"),
    url: z.string(),
    text: z.string(),
    expires: z.string(),
    path_prefix: PATH_PREFIX,
  })
  .describe("The line of the origin's file that names the buyer.");

const links = {
  exam_url: z.url().describe("Its status."),
  cert_url: z.url().describe("Its record, also as a page."),
  evidence_url: z.url().describe("Every request and answer, once it has ended; 404 until then."),
};

/** The response to an order of an exam. */
export const ORDERED = z.object({
  id,
  status: z.literal("incomplete"),
  ...links,
  result_within_seconds: z.int(),
  origin: z.string(),
  pay_to: address,
  price: usd,
  ceiling: usd,
});

export const CHECK_WEIGHT = z
  .enum(["safe", "full"])
  .describe("The lowest level that needs the check: `safe` (and therefore `full` as well), or only `full`.");

export const REMEDY = z
  .object({ text: z.string(), link: z.url() })
  .nullable()
  .describe("How the seller can fix it; null if the check holds.");

export const CHECK = z.object({
  check: z.enum(CHECKS),
  weight: CHECK_WEIGHT,
  outcome: z.enum(["pass", "fail", "not_applicable"]),
  reason: z.string().nullable(),
  findings: z.array(
    z.object({
      code: z.string().optional(),
      statement: z.string(),
      holds: z.boolean(),
      exchanges: z.array(z.int()),
      remedy: REMEDY,
    }),
  ),
});

/** The status of an order. Members from `certified` on are present once it has ended. */
export const EXAM_STATUS = z.object({
  id,
  ...links,
  origin: z.string(),
  path_prefix: PATH_PREFIX,
  request: EXAMINED_REQUEST,
  pay_to: address,
  price: usd,
  consent: CONSENT_LINE,
  ordered_at: time,
  paid: z.object({ network: z.string(), payer: address, transaction: z.string() }),
  again_of: id.nullable().describe("The corrected exam that it repeats free of charge, bought with the same payment."),
  status: z.enum(["incomplete", "complete", "interrupted"]),
  result_within_seconds: z.int().optional(),
  certified: z.boolean().optional(),
  level: z.enum(["full", "safe"]).nullable().optional(),
  note: z.string().nullable().optional(),
  checks: z.array(CHECK).optional(),
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
    .describe("The refund to the buyer of an exam that we broke, once it is final."),
});

const texts = z.record(z.string(), z.string());

/** The terms before an exam, and the seller's details if one was named. */
export const EXAM_TERMS = z.object({
  price: usd,
  ceiling: usd,
  result_within_seconds: z.int(),
  payments: z.int(),
  runs: z.int(),
  cooldown_minutes: z.int(),
  checks: z.array(z.object({ check: z.enum(CHECKS), passes_if: z.string(), weight: CHECK_WEIGHT })),
  levels: texts,
  refusals: texts,
  rehearsal: z
    .object({
      command: z.string(),
      note: z.string(),
      hosted: z.object({ method: z.literal("POST"), url: z.url(), note: z.string() }),
    })
    .describe("How to rehearse the same exam first, without a record."),
  for_sale: z.boolean(),
  seller: z
    .object({
      url: z.string(),
      refused: z.object({ code: z.string(), detail: z.string() }).nullable(),
      not_now: z.string().nullable(),
      origin: z.string(),
      pay_to: address.optional(),
      price: usd.optional(),
      path_prefix: PATH_PREFIX.optional(),
      consent: z
        .object({
          file: z.object({ url: z.string(), line: z.string() }).describe("The line to add, and the URL of the file."),
          lines: z
            .array(z.object({ wallet: address, path_prefix: PATH_PREFIX, expires: z.string() }))
            .describe("The wallets that may buy exams now, according to the file."),
          problems: z
            .array(z.object({ line: z.int(), problem: z.string() }))
            .describe("Lines addressed to us that do not give consent."),
        })
        .optional(),
    })
    .optional(),
});
