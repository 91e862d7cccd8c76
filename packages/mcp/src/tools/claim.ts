import { z } from "zod";
import { CATEGORIES, type CategoryName } from "../../../verifier/src/vocabulary.ts";
import { wallet } from "../fields.ts";

const sha256 = z.string().regex(/^[0-9a-fA-F]{64}$/, "expected a SHA-256: 64 hex digits");

const proof = { acceptIndex: z.int().min(0).optional(), signature: z.string().min(1).max(8_192) };

const signed = z
  .discriminatedUnion("format", [
    z.strictObject({ format: z.literal("jws"), ...proof }),
    z.strictObject({
      format: z.literal("eip712"),
      payload: z.record(z.string(), z.union([z.string(), z.number()])),
      ...proof,
    }),
  ])
  .describe("As in extensions of PAYMENT-REQUIRED and PAYMENT-RESPONSE.");

const CONDITIONS = {
  "http-delivery": z
    .strictObject({
      url: z.string().min(1).max(2_048).describe("A public http or https URL, which the arbiter fetches itself."),
      expect_status: z
        .union([z.int().min(200).max(599), z.string().regex(/^[2-5]\d\d$/)])
        .optional()
        .describe("Defaults to any 2xx."),
      expect_sha256: sha256.optional(),
      min_bytes: z
        .union([z.int().min(0), z.string().regex(/^\d{1,15}$/)])
        .optional()
        .describe("0 agrees to an empty body; without any condition on the body, an empty one escalates."),
      expect_contains: z.string().min(1).optional(),
    })
    .describe("For http-delivery. A mismatch has to be found twice, and a bot wall's answer escalates."),
  "payload-hash": z
    .strictObject({ payload_text: z.string().optional(), payload_b64: z.string().optional(), expected_sha256: sha256 })
    .describe("For payload-hash: give exactly one of payload_text and payload_b64."),
  "ci-status": z
    .strictObject({
      repo: z.string().regex(/^[^/\s]+\/[^/\s]+$/, "expected owner/name"),
      commit_sha: z
        .string()
        .regex(/^([0-9a-fA-F]{40}|[0-9a-fA-F]{64})$/, "expected a full commit hash: 40 or 64 hex digits"),
    })
    .describe("For ci-status: a public GitHub repository and commit. The newest run of each check counts."),
  "offer-breach": z
    .strictObject({
      offer: signed,
      receipt: signed.optional().describe("Without it the verdict is escalate."),
      settlement: z
        .strictObject({ network: z.string(), transaction: z.string() })
        .describe("The final transaction that the receipt names."),
    })
    .describe("For offer-breach: what the seller signed, and the payment. Only the wallet that paid it can claim."),
} as const satisfies Readonly<Record<CategoryName, z.ZodType>>;

/**
 * A delivery claim, checked as strictly as possible without the service: anything the service refuses has already been
 * signed for.
 */
export const CLAIM = z.strictObject({
  category: z.enum(CATEGORIES),
  conditions: z.union(CATEGORIES.map((name) => CONDITIONS[name])),
  deal_ref: z
    .string()
    .min(1)
    .max(120)
    .optional()
    .describe("The caller's own reference for the deal, which the verdict repeats."),
  parties: z
    .strictObject({ payer: wallet, payee: wallet })
    .optional()
    .describe("Required for scored, unless deal_ref is a payment in the service's own escrow."),
});

/** What the category rejects about its conditions, or null. */
export function conditionsFault({
  category,
  conditions,
}: Pick<z.infer<typeof CLAIM>, "category" | "conditions">): string | null {
  const parsed = CONDITIONS[category].safeParse(conditions);
  if (!parsed.success)
    return parsed.error.issues.map(({ path, message }) => `conditions.${path.join(".")}: ${message}`).join(" · ");
  const both = "payload_text" in conditions === "payload_b64" in conditions;
  return category === "payload-hash" && both
    ? "conditions: expected exactly one of payload_text and payload_b64"
    : null;
}
