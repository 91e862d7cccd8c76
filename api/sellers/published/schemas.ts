import { z } from "zod";
import { LEVEL_MEANINGS } from "../../../packages/seller-check/src/exam/level.ts";
import { CHECKS } from "../../../packages/seller-check/src/exam/vocabulary.ts";
import { LOG_PLACE } from "../../log/index.ts";
import {
  address,
  atomic,
  bytes32,
  count,
  network,
  SERVICE,
  sha256Hex,
  time,
  transactionHash,
  url,
  usd,
} from "../../platform/http/schema.ts";
import type { Signed } from "../../platform/signing/document.ts";
import { CREDENTIAL_MEMBERS } from "../../platform/signing/schemas.ts";
import type { WebOrigin } from "../../platform/web/target.ts";
import { VALID_DAYS } from "../record.ts";
import { CHECK_WEIGHT, CONSENT_LINE, EXAMINED_REQUEST, examId, PATH_PREFIX, REMEDY } from "../schemas.ts";
import type { sellerRecord } from "./document.ts";
import type { payeeExams, sellerCredential, sellerVerification } from "./verification.ts";

export const origin = z
  .string()
  .regex(/^https?:\/\/[^/?#]+$/)
  .meta({
    description: "Scheme, host and port: lower case, Punycode, without a default port.",
  }) as unknown as z.ZodType<WebOrigin>;
const verdict = z.enum(["pass", "fail"]);
const level = z
  .enum(["full", "safe"])
  .nullable()
  .meta({ description: `full: ${LEVEL_MEANINGS.full}. safe: ${LEVEL_MEANINGS.safe}. Null with a FAIL.` });
const httpMethod = z.string();
/** The examined URL, without its query. */
const examinedUrl = z.string();

const exchangeNumbers = z.array(count);

const CHAIN_SETTLEMENT = z.object({
  nonce: bytes32,
  transaction: transactionHash,
  block: count,
  from: address,
  to: address,
  value: atomic,
});

const CHECK = z
  .object({
    check: z.enum(CHECKS),
    title: z.string(),
    weight: CHECK_WEIGHT,
    outcome: z.enum(["pass", "fail", "not_applicable"]),
    reason: z.string().nullable(),
    findings: z.array(
      z.object({
        statement: z.string().meta({ description: "True if `holds`. It may quote the seller's own words." }),
        holds: z.boolean(),
        exchanges: exchangeNumbers.meta({ description: "Numbers of the exchanges, in the evidence, that show it." }),
        remedy: REMEDY,
      }),
    ),
  })
  .meta({ id: "SellerCheck" });

const HEADERS = z.record(z.string(), z.string());

/** A body as it is kept: its start as text or in base64, with the size and the digest of the whole. */
const BODY = z.object({
  bytes: count,
  sha256: sha256Hex,
  text: z.string().nullable(),
  base64: z.string().nullable(),
  isWhole: z.boolean(),
});

export type KeptBody = z.infer<typeof BODY>;

/** One request with its answer, or the reason there is none. Findings refer to it by its number. */
export const EXCHANGE = z.object({
  number: count,
  request: z.object({
    method: httpMethod,
    url: z.string().meta({ description: "Without its query." }),
    querySha256: sha256Hex.nullable(),
    headers: HEADERS,
    bodySha256: sha256Hex.nullable(),
    family: z.literal([4, 6]).exactOptional(),
  }),
  answer: z
    .object({
      status: z.int(),
      headers: HEADERS,
      body: BODY,
    })
    .nullable(),
  failure: z.string().nullable(),
});

export type KeptExchange = z.infer<typeof EXCHANGE>;

/** The evidence kept of an exam. */
export const EVIDENCE = z
  .object({
    exchanges: z.array(EXCHANGE).meta({ description: "Every request, with the seller's answer." }),
    settlements: z.array(CHAIN_SETTLEMENT).meta({
      description: "The payments that the examiner read from the chain at the end, regardless of the answers.",
    }),
  })
  .meta({ id: "SellerEvidence" });

export type KeptEvidence = z.infer<typeof EVIDENCE>;

/** The public record of an exam. */
export const SELLER_RECORD = z
  .object({
    id: examId,
    product: z.literal("seller"),
    origin: z.string(),
    path_prefix: PATH_PREFIX,
    request: EXAMINED_REQUEST,
    pay_to: address,
    amount: atomic,
    amount_usd: usd,
    network,
    control: CONSENT_LINE,
    bought_by: address.meta({ description: "The wallet that the line names." }),
    bought_with: z.object({ transaction: transactionHash, explorer_url: url }),
    ordered_at: time,
    status: z.enum(["incomplete", "complete", "interrupted"]),
    note: z.string().nullable(),
    checks: z.array(CHECK),
    spent: atomic.nullable(),
    runs: count.nullable(),
    evidence: z
      .object({
        url,
        sha256: sha256Hex,
        removed: z
          .object({ reason: z.string(), at: time })
          .exactOptional()
          .meta({ description: "Only if the evidence was removed: `url` then returns 451, and the digest stays." }),
      })
      .nullable(),
    published: z.boolean().meta({ description: "False if nothing is certified, for or against the seller." }),
    verdict: verdict.nullable(),
    level,
    issued_at: time.nullable(),
    valid_until: time.nullable(),
    fresh: z.boolean().meta({
      description:
        "Whether it counts: the newest of its request, not expired, not withdrawn, its payments on the chain.",
    }),
    expired: z.boolean(),
    superseded_by: url.nullable(),
    earlier: z
      .array(z.object({ verdict, issued_at: time, cert_url: url }))
      .meta({ description: "Published exams of the same request before this one, newest first." }),
    badge_url: url.nullable(),
    badge_markdown: z.string().nullable(),
    verify_url: url.nullable(),
    correction: z
      .object({
        reason: z.string(),
        at: time,
        free_exam: z
          .object({ granted_at: time, cert_url: url.nullable() })
          .nullable()
          .meta({ description: "The free exam that came with it, and that exam's record once it was taken." }),
      })
      .nullable(),
    again_of: url.nullable().meta({ description: "The corrected exam that it repeats free of charge." }),
    reversed_at: time
      .nullable()
      .meta({ description: "When a payment that it depends on was found missing from the chain." }),
    settlements: z.array(CHAIN_SETTLEMENT.extend({ claimed_in: exchangeNumbers, explorer_url: url })).meta({
      description:
        "The exam's payments, read from the chain at its end. `claimed_in`: the exchanges whose answers name the payment.",
    }),
    claimed_settlements: z
      .array(
        z.object({
          transaction: transactionHash,
          exchanges: exchangeNumbers,
          on_chain: z.boolean(),
          explorer_url: url,
        }),
      )
      .meta({
        description: "The transactions that the seller's answers name. `on_chain`: whether it is one of `settlements`.",
      }),
    cert_url: url,
    log: z.array(LOG_PLACE).exactOptional().meta({ description: "Its places in the log; absent until it has one." }),
    checked_at: time,
  })
  .meta({ id: "SellerRecord" }) satisfies z.ZodType<ReturnType<typeof sellerRecord>>;

const NAMES_AN_EXAM = { text: z.string(), issued: time, valid_until: time, cert_url: url };
const NAMES_NONE = { text: z.string(), issued: z.null(), valid_until: z.null(), cert_url: z.null() };

const REASON = z
  .discriminatedUnion("code", [
    z.object({ code: z.literal("current_fail"), ...NAMES_AN_EXAM }),
    z.object({ code: z.literal("pass_expired"), ...NAMES_AN_EXAM }),
    z.object({ code: z.literal("pass_superseded"), ...NAMES_AN_EXAM }),
    z.object({ code: z.literal("pass_corrected"), ...NAMES_AN_EXAM }),
    z.object({ code: z.literal("pass_reversed"), ...NAMES_AN_EXAM }),
    z.object({ code: z.literal("no_pass"), ...NAMES_NONE }),
    z.object({ code: z.literal("never_tested"), ...NAMES_NONE }),
  ])
  .meta({ id: "SellerNotVerifiedReason", description: "Why an origin is not verified. Codes are stable." });

const LISTED = z.object({
  id: examId,
  product: z.literal("seller"),
  result: verdict,
  level,
  method: httpMethod,
  url: examinedUrl,
  pay_to: address,
  fresh: z.boolean(),
  expired: z.boolean(),
  superseded: z.boolean(),
  corrected: z.boolean(),
  reversed: z.boolean(),
  issued: time,
  valid_until: time,
  cert_url: url,
});

/** The record of an origin. */
export const SELLER_VERIFICATION = z
  .object({
    service: SERVICE,
    origin,
    path_prefix: PATH_PREFIX,
    tested: z.boolean(),
    verified: z.boolean(),
    verified_means: z.string(),
    counting_rule: z.string(),
    reasons: z.array(REASON).meta({ description: "Why the origin is not verified; empty when it is." }),
    certs: z.array(LISTED.extend({ age_days: count, badge_url: url })),
    freshness_policy: z.object({ valid_for_days: z.literal(VALID_DAYS), note: z.string() }),
    how_to_test: url,
    checked_at: time,
  })
  .meta({ id: "SellerVerification" }) satisfies z.ZodType<ReturnType<typeof sellerVerification>>;

/** The record of an origin as a W3C Verifiable Credential (data model 2.0). */
export const SELLER_CREDENTIAL = z
  .object({
    ...CREDENTIAL_MEMBERS,
    credentialSubject: z.object({
      id: z.string().meta({ description: "The origin, with `path_prefix` if that is not the whole." }),
      origin: origin.exactOptional().meta({ description: "Absent if the record is about a part of the origin." }),
      path_prefix: PATH_PREFIX,
      tested: z.boolean(),
      verified: z.boolean(),
      verified_means: z.string(),
      conformance: z.array(LISTED),
    }),
  })
  .meta({ id: "SellerCredential" }) satisfies z.ZodType<Signed<ReturnType<typeof sellerCredential>>>;

/** The exams of a payee. */
export const PAYEE_EXAMS = z
  .object({
    service: SERVICE,
    wallet: address,
    note: z.string(),
    exams: z.array(
      z.object({
        id: examId,
        origin,
        path_prefix: PATH_PREFIX,
        method: httpMethod,
        url: examinedUrl,
        result: verdict,
        level,
        control: z.literal("file"),
        issued: time,
        valid_until: time,
        cert_url: url,
      }),
    ),
    checked_at: time,
  })
  .meta({ id: "PayeeExams" }) satisfies z.ZodType<ReturnType<typeof payeeExams>>;
