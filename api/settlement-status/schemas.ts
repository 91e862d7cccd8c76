import { z } from "zod";
import {
  address,
  atomic,
  bytes32,
  count,
  network,
  time,
  transactionHash,
  unixSeconds,
  url,
} from "../platform/http/schema.ts";
import type { Signed } from "../platform/signing/document.ts";
import { PROOF } from "../platform/signing/schemas.ts";
import type { SettlementDocument, StatementDocument } from "./statement.ts";

const block = { block: count, time };

const about = {
  network,
  asset: address,
  from: address,
  nonce: bytes32,
};

const shown = {
  as_of: z.object(block).meta({
    description: "The block at which the nonce was read, or the block of the proof once the status is final.",
  }),
  means: z.string(),
};

const maybeFinal = z.boolean().meta({ description: "True if this status can never change." });

const end = {
  transaction: transactionHash,
  block: count,
  block_hash: bytes32,
  block_time: time,
  explorer_url: url,
};

const transfer = { to: address, value: atomic };
const before = { valid_before: unixSeconds.nullable() };

export const SETTLEMENT = z
  .discriminatedUnion("status", [
    z.object({ ...about, status: z.enum(["settled", "replaced"]), final: maybeFinal, ...shown, ...end, ...transfer }),
    z.object({ ...about, status: z.literal("canceled"), final: maybeFinal, ...shown, ...end }),
    z.object({
      ...about,
      status: z.literal("used"),
      final: z.literal(false),
      ...shown,
      search: z.enum(["unfinished", "nowhere", "later"]),
    }),
    z.object({
      ...about,
      status: z.literal("pending"),
      final: z.literal(false),
      ...shown,
      window: z.enum(["not_yet", "open", "closed", "unknown"]),
      ...before,
    }),
    z.object({
      ...about,
      status: z.literal("expired"),
      final: z.literal(true),
      ...shown,
      ...before,
      final_block: z
        .object({ ...block, hash: bytes32 })
        .meta({ description: "A block at or after valid_before. The nonce was not used in any block before it." }),
    }),
  ])
  .meta({ id: "Settlement" }) satisfies z.ZodType<SettlementDocument>;

export const STATEMENT = z
  .object({
    "@context": z.array(z.string()),
    type: z.literal("SettlementStatement"),
    id: z.string().regex(/^[0-9a-f]{32}$/),
    issuer: z.string().regex(/^did:web:/),
    authorization: z.object({
      from: address,
      to: address,
      value: atomic,
      validAfter: unixSeconds,
      validBefore: unixSeconds,
      nonce: bytes32,
    }),
    signature: z.object({
      verified: z.boolean(),
      primary_type: z.enum(["TransferWithAuthorization", "ReceiveWithAuthorization"]).exactOptional(),
      digest: bytes32.exactOptional(),
    }),
    conditional_on: z
      .literal("authorization.validBefore")
      .nullable()
      .describe("The unproven member that the statement depends on, or null if the payer's signature was verified."),
    settlement: SETTLEMENT,
    issued_at: time,
    proof: PROOF,
  })
  .meta({ id: "SettlementStatement" }) satisfies z.ZodType<Signed<StatementDocument>>;
