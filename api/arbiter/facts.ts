import { z } from "zod";
import type { BreachFact } from "../../packages/verifier/src/verdict/v2/evidence.ts";
import { address, atomic, count, sha256Hex } from "../platform/http/schema.ts";
import type { Question } from "./policy/category.ts";
import type { ConditionResult } from "./policy/policy.ts";

const nullableText = z.string().nullable();

export const verdictId = z.string().regex(/^[0-9a-f]{32}$/);
export const RESULT = z.enum(["true", "false", "unknown"]) satisfies z.ZodType<ConditionResult>;

/** The sources of the arbiter's observations. */
export const SOURCE = z.enum({
  fetch: "fetch",
  "check-runs": "check-runs",
  "check-suites": "check-suites",
  "commit-statuses": "commit-statuses",
  signatures: "signatures",
  transaction: "transaction",
} as const satisfies { readonly [Type in Question["type"]]: Type });

const measure = z.object({ bytes: count, sha256: sha256Hex });
const OUTCOMES = ["read", "not_found", "rate_limited", "denied", "unavailable", "bad_response"] as const;
/** How one of GitHub's lists was read. `complete` and `consistent` are present only if it was. */
const listed = {
  outcome: z.enum(OUTCOMES),
  complete: z.boolean().exactOptional(),
  consistent: z.boolean().exactOptional(),
  count: count.exactOptional(),
};
const signed = z.object({
  format: z.enum(["jws", "eip712"]),
  acceptIndex: count.exactOptional(),
  payload: z.record(z.string(), z.union([z.string(), z.number()])).exactOptional(),
  signature: z.string(),
});

/** An item of a verdict's facts: an observation, or the result of a condition. */
export const FACT = z
  .discriminatedUnion("fact", [
    z.object({
      fact: z.literal("fetch_attempt"),
      attempt: z.int().min(1),
      url: z.string(),
      request_headers: z.record(z.string(), z.string()).exactOptional(),
      redirects: z.array(z.object({ status: z.int(), location: z.string() })),
      status: z.int().nullable(),
      content_type: nullableText,
      content_encoding: nullableText,
      challenge: nullableText.exactOptional(),
      received: measure.nullable(),
      decoded: measure.nullable(),
      contains: z.boolean().nullable(),
      failure: nullableText,
    }),
    z.object({ fact: z.literal("payload"), encoding: z.enum(["text", "base64"]), bytes: count, sha256: sha256Hex }),
    z.object({
      fact: z.literal("check_runs"),
      repo: z.string(),
      commit_sha: z.string(),
      ...listed,
    }),
    z.object({
      fact: z.literal("check_run"),
      id: count,
      name: z.string(),
      status: z.string(),
      conclusion: nullableText,
      head_sha: z.string(),
      app: nullableText.exactOptional(),
      suite: count.nullable().exactOptional(),
      counts: z.boolean().exactOptional(),
      why: z.enum(["newest", "superseded", "fork", "origin_unclear"]).exactOptional(),
    }),
    z.object({ fact: z.literal("check_suites"), ...listed }),
    z.object({
      fact: z.literal("check_suite"),
      id: count,
      head_branch: nullableText,
      head_repository: nullableText,
      origin: z.enum(["own", "fork", "unclear"]),
    }),
    z.object({
      fact: z.literal("commit_statuses"),
      ...listed,
      outcome: z.enum([...OUTCOMES, "not_read"]),
    }),
    z.object({ fact: z.literal("commit_status"), id: count, context: z.string(), state: z.string() }),
    z.object({
      fact: z.literal("offer_breach_claim"),
      claimant: address,
      offer: signed,
      receipt: signed.nullable(),
      settlement: z.object({ network: z.string(), transaction: z.string() }),
    }),
    z.object({
      fact: z.literal("signature"),
      of: z.enum(["offer", "receipt"]),
      signer: nullableText,
      key: z.record(z.string(), z.string()).nullable(),
      reason: z.string(),
    }),
    z.object({
      fact: z.literal("did_document"),
      url: z.string(),
      status: z.int().nullable(),
      sha256: sha256Hex.nullable(),
      failure: nullableText,
    }),
    z.object({
      fact: z.literal("transaction"),
      network: z.string(),
      transaction: z.string(),
      outcome: z.enum([
        "final",
        "not_final",
        "not_found",
        "reverted",
        "too_many_transfers",
        "unavailable",
        "network_not_read",
      ]),
      block: count.nullable(),
      time: count.nullable(),
    }),
    z.object({
      fact: z.literal("transfer"),
      network: z.string(),
      log_index: count,
      asset: address,
      from: address,
      to: address,
      value: atomic,
      by_authorization: z
        .boolean()
        .describe("Whether the payer made it with an EIP-3009 authorization, as in `exact`."),
      to_has_code: z
        .boolean()
        .nullable()
        .describe("Whether `to` has code, as an escrow does. `null` if the nodes did not show it."),
    }),
    z.object({ fact: z.literal("decided_before"), verdict: verdictId }),
    z.object({
      fact: z.literal("condition"),
      condition: z.string(),
      expected: z.union([z.string(), z.number()]),
      observed: z.union([z.string(), z.number(), z.boolean()]).nullable(),
      result: RESULT,
      reason: z.string(),
    }),
  ])
  .meta({ id: "VerdictFact" });

/**
 * An item of a verdict's `facts`, as published: JSON whose numbers are safe integers. It does not contain the time of
 * observation.
 */
export type Fact = z.infer<typeof FACT> | BreachFact;
