import { createHash } from "node:crypto";
import { z } from "zod";
import type { Measure } from "../../../platform/web/guarded-fetch/request.ts";
import { malformed, unicodeText } from "../../claim.ts";
import { type Category, category, type JudgedCondition } from "../category.ts";
import { conditionsOf, sha256Hex } from "../conditions.ts";

/**
 * Contains only the payload's measure, taken during parsing, so that the payload never reaches a store (policy, rule
 * 6).
 */
interface Conditions {
  readonly encoding: "text" | "base64";
  readonly payload: Measure;
  readonly expectedSha256: string;
}

/**
 * Returns the bytes of padded base64 in its canonical form (RFC 4648, sections 3.5 and 4), or null for anything else.
 */
function strictBase64(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? bytes : null;
}

const base64Bytes = z.string().transform((text, issues) => {
  const bytes = strictBase64(text);
  if (bytes === null) malformed(issues, [], "expected base64 with padding (RFC 4648, section 4)");
  return bytes ?? z.NEVER;
});

const FIELDS = conditionsOf({
  payload_text: unicodeText.optional(),
  payload_b64: base64Bytes.optional(),
  expected_sha256: sha256Hex,
}).superRefine((given, issues) => {
  if ((given.payload_text === undefined) === (given.payload_b64 === undefined))
    malformed(issues, ["payload_text"], "expected exactly one of payload_text and payload_b64");
});

/** Measures bytes without keeping them. */
export const measure = (bytes: Uint8Array): Measure => ({
  bytes: bytes.length,
  sha256: createHash("sha256").update(bytes).digest("hex"),
});

const conditions = FIELDS.transform(
  ({ payload_text, payload_b64, expected_sha256 }): Conditions => ({
    encoding: payload_b64 === undefined ? "text" : "base64",
    payload: measure(payload_b64 ?? Buffer.from(payload_text ?? "")),
    expectedSha256: expected_sha256,
  }),
);

function judge({ payload, expectedSha256 }: Conditions): readonly JudgedCondition[] {
  const isMatch = payload.sha256 === expectedSha256;
  return [
    {
      condition: "expected_sha256",
      expected: expectedSha256,
      observed: payload.sha256,
      result: isMatch ? "true" : "false",
      reason: isMatch ? "match" : "mismatch",
    },
  ];
}

const PAYLOAD_HASH: Category<Conditions> = {
  name: "payload-hash",
  conditions: () => conditions,
  next: () => null,
  judge,
  facts: ({ encoding, payload }) => [{ fact: "payload", encoding, bytes: payload.bytes, sha256: payload.sha256 }],
};

export const payloadHash = category(PAYLOAD_HASH);
