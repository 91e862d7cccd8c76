import { z } from "zod";
import { CATEGORIES, type CategoryName } from "../../../verifier/src/vocabulary.ts";
import { wallet } from "../fields.ts";

const sha256 = z.string().regex(/^[0-9a-fA-F]{64}$/, "expected a SHA-256: 64 hex digits");

const proof = { acceptIndex: z.int().min(0).optional(), signature: z.string().min(1).max(8_192) };

const signed = z.discriminatedUnion("format", [
  z.strictObject({ format: z.literal("jws"), ...proof }),
  z.strictObject({
    format: z.literal("eip712"),
    payload: z.record(z.string(), z.union([z.string(), z.number()])),
    ...proof,
  }),
]);

const CONDITIONS = {
  "http-delivery": {
    words:
      "url, which the arbiter fetches; optional expect_status (else any 2xx), expect_sha256, min_bytes, expect_contains.",
    schema: z.strictObject({
      url: z.string().min(1).max(2_048),
      expect_status: z.union([z.int().min(200).max(599), z.string().regex(/^[2-5]\d\d$/)]).optional(),
      expect_sha256: sha256.optional(),
      min_bytes: z.union([z.int().min(0), z.string().regex(/^\d{1,15}$/)]).optional(),
      expect_contains: z.string().min(1).optional(),
    }),
  },
  "payload-hash": {
    words: "expected_sha256, and either payload_text or payload_b64.",
    schema: z.strictObject({
      payload_text: z.string().optional(),
      payload_b64: z.string().optional(),
      expected_sha256: sha256,
    }),
  },
  "ci-status": {
    words: "repo (owner/name, public on GitHub), commit_sha (in full).",
    schema: z.strictObject({
      repo: z.string().regex(/^[^/\s]+\/[^/\s]+$/, "expected owner/name"),
      commit_sha: z
        .string()
        .regex(/^([0-9a-fA-F]{40}|[0-9a-fA-F]{64})$/, "expected a full commit hash: 40 or 64 hex digits"),
    }),
  },
  "offer-breach": {
    words:
      "offer and receipt as signed in PAYMENT-REQUIRED and PAYMENT-RESPONSE, settlement {network, transaction}; only the wallet that paid can claim, and without the receipt the verdict is escalate.",
    schema: z.strictObject({
      offer: signed,
      receipt: signed.optional(),
      settlement: z.strictObject({ network: z.string(), transaction: z.string() }),
    }),
  },
} as const satisfies Readonly<Record<CategoryName, { readonly words: string; readonly schema: z.ZodType }>>;

/** The conditions of every category, in words. */
const WORDS = CATEGORIES.map((name) => `${name}: ${CONDITIONS[name].words}`).join(" ");

/**
 * A delivery claim. Its conditions are described in words: their schemas, which `conditionsFault` checks before
 * anything is signed, would be a third of all tools' definitions, which a model reads before every conversation.
 */
export const CLAIM = z.strictObject({
  category: z.enum(CATEGORIES),
  conditions: z.record(z.string(), z.unknown()).describe(WORDS),
  deal_ref: z.string().min(1).max(120).optional().describe("Your reference for the deal, which the verdict repeats."),
  parties: z
    .strictObject({ payer: wallet, payee: wallet })
    .optional()
    .describe("Required for scored, unless deal_ref is a payment in this service's escrow."),
});

/** Returns the fault of the conditions in their category, or null. */
export function conditionsFault({
  category,
  conditions,
}: Pick<z.infer<typeof CLAIM>, "category" | "conditions">): string | null {
  const parsed = CONDITIONS[category].schema.safeParse(conditions);
  if (!parsed.success)
    return parsed.error.issues.map(({ path, message }) => `conditions.${path.join(".")}: ${message}`).join(" · ");
  const both = "payload_text" in conditions === "payload_b64" in conditions;
  return category === "payload-hash" && both
    ? "conditions: expected exactly one of payload_text and payload_b64"
    : null;
}
