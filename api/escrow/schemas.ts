import { z } from "zod";
import { DELIVERY_TYPES } from "../../packages/escrow/src/delivery.ts";
import { SCHEME } from "../../packages/escrow/src/terms.ts";
import {
  address,
  atomic,
  bytes32,
  count,
  membersOf,
  mixedCaseAddress,
  network,
  networkKey,
  SERVICE,
  time,
  transactionHash,
  url,
  usd,
} from "../platform/http/schema.ts";
import type { Signed } from "../platform/signing/document.ts";
import { PROOF } from "../platform/signing/schemas.ts";
import { CONTEST_TYPES } from "./contest/claim.ts";
import { CONTEST_POLICY } from "./contest/schemas.ts";
import { DELIVERY_VERSION } from "./delivery.ts";
import type { escrowOverview } from "./overview.ts";
import { FEE_BPS, TIMEOUT_SECONDS } from "./payment.ts";
import type { evaluationRecord } from "./record.ts";

const decision = z.enum(["release", "refund"]);
const status = z.enum(["pending", "released", "refunded"]);
const schemeId = z.enum(["commerce", "auth-capture"]);
const rules = z.array(z.object({ id: z.string(), decision, when: z.string() }));

/** The escrow's policy document. */
export const ESCROW = z
  .object({
    service: SERVICE,
    what: z.string(),
    contracts: z.array(
      z.object({
        network,
        network_key: networkKey,
        scheme: schemeId,
        address,
        custody: address,
        collector: address,
        usdc: address,
        arbiter: address,
        fee_recipient: address,
        validity: z.string(),
        explorer_url: url,
        held_by: z.string(),
        can_get_stuck: z.string(),
        payer_can_reclaim: z.string(),
        gas: z.object({ hold: count, release: count, refund: count }),
      }),
    ),
    fee_policy: z.object({ fee_bps: z.literal(FEE_BPS), text: z.string() }),
    limits: z.object({
      minimum_amount: atomic,
      payer_gas_a_day: atomic,
      outcome_gas: atomic,
      gas_paid_by_a_unit_of_fee: atomic,
      text: z.string(),
    }),
    verdict_policy: z.object({
      version: z.literal(DELIVERY_VERSION),
      rules,
      first_is_final: z.string(),
      timeout_seconds: z.literal(TIMEOUT_SECONDS),
      timeout: z.string(),
      scope: z.string(),
      arbiter_can: z.string(),
    }),
    forward: z
      .object({
        url,
        method: z.literal("POST"),
        body: z.string(),
        domain: z.object({ name: z.string(), version: z.string(), chainId: z.int(), verifyingContract: address }),
        verifying_contract: z.string(),
        types: z.object({ Delivery: membersOf(DELIVERY_TYPES.types.Delivery) }),
        primaryType: z.literal("Delivery"),
      })
      .nullable(),
    contest: CONTEST_POLICY.extend({
      signed: z
        .object({
          domain: z.object({ name: z.string(), version: z.string(), chainId: z.int(), verifyingContract: address }),
          types: z.object({ Contest: membersOf(CONTEST_TYPES.types.Contest) }),
          primaryType: z.literal("Contest"),
        })
        .nullable(),
    }),
    neutrality: z.string(),
    integration: z.object({ package: z.string(), language: z.string(), snippet: z.string() }),
    demo: z.object({
      method: z.literal("POST"),
      url,
      price: usd,
      scheme: z.literal(SCHEME).describe("One of schemes."),
      schemes: z.array(schemeId),
    }),
  })
  .meta({ id: "Escrow" }) satisfies z.ZodType<ReturnType<typeof escrowOverview>>;

const DECIDED = { decision, rule: z.string(), record: bytes32, record_url: url };

/** The response to a forwarded delivery. */
export const EVALUATED = z
  .object({
    payment_id: bytes32,
    ...DECIDED,
    contest: z.object({ seconds: count, until: time, url }).exactOptional(),
    status,
    transaction: transactionHash.nullable(),
  })
  .meta({ id: "EscrowAnswer" });

/** The public record of one evaluation. */
export const EVALUATION = z
  .object({
    "@context": z.array(z.string()),
    type: z.literal("EscrowEvaluation"),
    id: url,
    issuer: z.string().regex(/^did:web:/),
    payment_id: bytes32,
    network,
    contract: address,
    payer: address,
    merchant: address,
    service_is: z
      .enum(["payer", "merchant"])
      .exactOptional()
      .describe(
        "The party that this service itself is: the merchant of its demo, or the buyer of an exam of a seller. Absent in all other sales.",
      ),
    amount: atomic,
    amount_usd: usd,
    fee: atomic,
    hold_transaction: transactionHash,
    delivery: z.object({
      status: z.int(),
      content_type: z.string().nullable(),
      content_encoding: z.string().nullable(),
      body_bytes: count,
      body_sha256: bytes32,
    }),
    decision,
    rule: z.string(),
    rule_text: z.string(),
    evaluation_version: z.literal(DELIVERY_VERSION),
    evaluated_at: time,
    contest: z
      .object({
        seconds: count,
        until: time,
        conditions: z.record(z.string(), z.unknown()),
        conditions_sha256: bytes32,
      })
      .exactOptional(),
    proof: PROOF,
  })
  .meta({ id: "EscrowEvaluation" }) satisfies z.ZodType<Signed<ReturnType<typeof evaluationRecord>>>;

/** The demo's description, for readers who do not pay. */
export const DEMO = z
  .object({
    what: z.string(),
    how: z.string(),
    package: z.string(),
    price: usd,
    price_atomic: atomic,
    merchant: mixedCaseAddress.nullable(),
    contract: mixedCaseAddress.nullable(),
    offers: z.array(z.object({ scheme: schemeId, contract: mixedCaseAddress })),
    steps: z.array(z.string()),
  })
  .meta({ id: "EscrowDemo" });

/** The espresso, with the outcome of its escrow. */
export const ESPRESSO = z
  .object({
    item: z.literal("espresso"),
    order: z.string(),
    art: z.string(),
    escrow: z.object({
      payment_id: bytes32,
      contract: address,
      network,
      status,
      hold: z.object({ transaction: transactionHash, block: count }),
      evaluation: z.object(DECIDED),
      release: z.object({ transaction: transactionHash.nullable() }),
    }),
  })
  .meta({ id: "EscrowedEspresso" });
