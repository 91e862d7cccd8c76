import { z } from "zod";
import { address, bytes32, network, time, transactionHash, url } from "../../platform/http/schema.ts";
import { PROOF } from "../../platform/signing/schemas.ts";
import { CONTEST_RULES } from "./grounds.ts";

const decision = z.enum(["release", "refund"]);
const signedDelivery = {
  status: z.int(),
  body_sha256: bytes32,
  content_type: z.string(),
  content_encoding: z.string(),
};
const claim = z.discriminatedUnion("category", [
  z.object({ category: z.literal("expect") }),
  z.object({ category: z.literal("http-delivery") }),
  z.object({
    category: z.literal("payload-hash"),
    delivery: z.object({
      status: z.int(),
      body_sha256: bytes32,
      content_type: z.string().optional(),
      content_type_keccak256: bytes32.optional(),
      content_encoding: z.string().optional(),
      content_encoding_keccak256: bytes32.optional(),
      signature: z.string().regex(/^0x[0-9a-f]*$/),
    }),
  }),
]);
const rule = z.enum(CONTEST_RULES.map(({ id }) => id));
const window = z.object({ seconds: z.int().min(1).max(1200), until: time });
const conditions = z.record(z.string(), z.unknown());
const PARTIES = { payment_id: bytes32, network, contract: address, payer: address, merchant: address };

/** The public record of one contest's answer. */
const ANSWER = z
  .object({
    "@context": z.array(z.string()),
    type: z.literal("EscrowContest"),
    id: url,
    issuer: z.string().regex(/^did:web:/),
    ...PARTIES,
    window,
    conditions,
    delivery: z.object(signedDelivery),
    claim,
    claim_sha256: bytes32,
    claim_signature: z.string().regex(/^0x[0-9a-f]*$/),
    made_at: time,
    decision,
    rule,
    rule_text: z.string(),
    facts: z.array(z.record(z.string(), z.unknown())),
    answered_at: time,
    proof: PROOF,
  })
  .meta({ id: "EscrowContest" });

/** A payment's window and its contest. */
export const CONTESTED = z
  .object({
    ...PARTIES,
    window,
    conditions,
    evaluation_url: url,
    contest_url: url,
    contest: z
      .object({
        claim,
        claim_sha256: bytes32,
        made_at: time,
        decision: decision.nullable(),
        rule: rule.nullable(),
        record: bytes32.nullable(),
      })
      .nullable(),
    answer: ANSWER.nullable(),
    status: z.enum(["pending", "released", "refunded"]),
    transaction: transactionHash.nullable(),
  })
  .meta({ id: "EscrowContested" });

/** The grounds and outcomes of contests, as published by `GET /escrow`. */
export const CONTEST_POLICY = z.object({
  url,
  method: z.literal("POST"),
  body: z.string(),
  window: z.object({
    least_seconds: z.literal(0),
    most_seconds: z.int(),
    room_seconds: z.int(),
    text: z.string(),
    in_terms: z.string(),
  }),
  grounds: z.array(
    z.object({
      category: z.enum(["expect", "http-delivery", "payload-hash"]),
      about: z.string(),
      needs: z.string(),
      table: z.string(),
    }),
  ),
  rules: z.array(z.object({ id: rule, decision, when: z.string() })),
  once: z.string(),
  binding: z.string(),
});
