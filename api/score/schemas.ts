import { z } from "zod";
import { CAP_LIMITS, MAX_POINTS, SCORE_VERSION } from "../../packages/verifier/src/score/bands.ts";
import type { ScoreFacts } from "../../packages/verifier/src/score/facts.ts";
import type { ScoreDocument } from "../../packages/verifier/src/score/record.ts";
import { BEHAVIORAL_PRODUCTS, PRODUCT_MENU, PRODUCTS } from "../../packages/verifier/src/vocabulary.ts";
import { result } from "../certificates/index.ts";
import {
  address,
  atomic,
  count,
  day,
  network,
  sha256Hex,
  time,
  transactionHash,
  url,
} from "../platform/http/schema.ts";
import { MAX_WALLETS } from "./request.ts";

const product = z.enum(PRODUCT_MENU);
const certificate = { url, product, result, valid_until: time };
const exam = {
  url,
  origin: z.string(),
  result,
  level: z.enum(["full", "safe"]).nullable(),
  control: z.literal("file").meta({ description: "The origin's file named this wallet, which bought the exam." }),
  issued_at: time,
  valid_until: time,
};
const tx = transactionHash;

const INPUTS = z
  .object({
    wallet: address,
    as_of: time,
    as_of_block: count,
    certificates: z.array(z.object({ id: z.string(), ...certificate, issued_at: time, reversed_at: time.nullable() })),
    seller_exams: z
      .array(z.object({ id: z.string().regex(/^[0-9a-f]{32}$/), ...exam }))
      .max(2)
      .meta({ description: "The newest PASS and FAIL that count, of sellers paid at the wallet." }),
    chain: z.object({
      network: z.string(),
      scope: z.enum(["full", "selective"]),
      lookup: z.object({ block: count, block_hash: tx, as_of_block: count }).nullable(),
      first_block: count,
      window: z.object({ from: day, to: day }),
      payments: z.object({
        days: z.array(z.object({ day, count, value: atomic })),
        last: z.object({ at: time, tx }).nullable(),
      }),
      largest_funder: address.nullable(),
      payees: z.array(
        z.object({
          payee: address,
          value: atomic,
          first_at: time,
          last_at: time,
          last_tx: tx,
          returned: atomic,
          funder_at_floor: address.nullable(),
          other_funders: count,
          unfunded_payers: count,
          payers: z.array(z.object({ payer: address, block: count, funder: address.nullable() })).nullable(),
        }),
      ),
      escrow: z.object({
        buyers: count,
        release_days: count,
        last_release_tx: tx.nullable(),
        refunded_buyers: count,
        refund_days: count,
        last_refund_tx: tx.nullable(),
      }),
    }),
  })
  .meta({
    id: "ScoreInputs",
    description: "Every fact the score is computed from.",
  }) satisfies z.ZodType<ScoreFacts>;

const IN_TRANSACTION = {
  transaction: transactionHash,
  tx: transactionHash.meta({ description: "The same as `transaction`.", deprecated: true }),
};

const counts = z.boolean().meta({ description: "Whether it adds or subtracts points." });

const FACT = z
  .discriminatedUnion("kind", [
    z.object({ kind: z.literal("certificate"), counts, fresh: z.boolean(), ...certificate }),
    z.object({
      kind: z.literal("payments"),
      counts,
      count,
      value: atomic,
      from: day,
      to: day,
      considered: count,
      ...IN_TRANSACTION,
    }),
    z.object({
      kind: z.literal("counterparty"),
      counts,
      payee: address,
      reason: z
        .enum(["below_floor", "outside_window", "reciprocal_flow", "own_funder", "funder_unknown", "too_few_funders"])
        .nullable(),
      ...IN_TRANSACTION,
    }),
    z.object({
      kind: z.literal("weeks"),
      counts,
      weeks: z.array(z.string().regex(/^\d{4}-W\d\d$/)),
      ...IN_TRANSACTION,
    }),
    z.object({ kind: z.literal("last_payment"), counts, at: time, days: count, ...IN_TRANSACTION }),
    z.object({ kind: z.literal("releases"), counts, buyers: count, days: count, ...IN_TRANSACTION }),
    z.object({ kind: z.literal("refunds"), counts, buyers: count, days: count, percent: count, ...IN_TRANSACTION }),
    z.object({ kind: z.literal("seller_exam"), counts: z.literal(false), fresh: z.boolean(), ...exam }),
  ])
  .meta({ id: "ScoreFact" });

const component = (max: number) => z.object({ points: z.int().max(max), max: z.literal(max), facts: z.array(FACT) });

const FLAG = z.enum([
  ...BEHAVIORAL_PRODUCTS.map((test) => `fresh_fail_${PRODUCTS[test].capability}` as const),
  ...PRODUCT_MENU.map((test) => `expired_${PRODUCTS[test].capability}` as const),
]);

export const SCORE = z
  .object({
    wallet: address,
    score: z.int().min(0).max(100),
    tier: z.enum(["A", "B", "C", "D", "F", "unrated"]),
    score_version: z.literal(SCORE_VERSION),
    as_of: time,
    as_of_block: count,
    components: z.object({
      payment_capability: component(MAX_POINTS.payment_capability),
      scam_resistance: component(MAX_POINTS.scam_resistance),
      recipient_awareness: component(MAX_POINTS.recipient_awareness),
      independent_counterparties: component(MAX_POINTS.independent_counterparties),
      payments: component(MAX_POINTS.payments),
      active_weeks: component(MAX_POINTS.active_weeks),
      recency: component(MAX_POINTS.recency),
      escrow_outcomes: component(MAX_POINTS.escrow_outcomes),
    }),
    flags: z.array(FLAG),
    caps: z.array(
      z.object({
        cap: z.enum(["unrated", "fresh_fail", "tier_b_requirements", "tier_a_requirements"]),
        limit: z.literal([...new Set(Object.values(CAP_LIMITS))]),
        because: z.array(z.string()),
      }),
    ),
    evidence: z.array(z.union([z.object({ url }), z.object({ network, ...IN_TRANSACTION })])),
    inputs_sha256: sha256Hex,
    inputs: INPUTS,
  })
  .meta({ id: "Score" }) satisfies z.ZodType<ScoreDocument>;

export const SCORES = z.array(SCORE).min(1).max(MAX_WALLETS).meta({ id: "Scores" });
