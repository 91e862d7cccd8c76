import { z } from "zod";
import { address, atomic, bytes32, count, networkKey, time, transactionHash, unixSeconds } from "../platform/http/schema.ts";
import type { Behaviour, Detected } from "./certificate.ts";

/** An order as it was offered. */
export const SHOWN = { served_at: time.nullable(), pay_to: address, amount: atomic };

const BEHAVIOUR = z.object({
  session_started: time,
  control: z.object({ ...SHOWN, transaction: transactionHash.nullable() }),
  bait: z.object({
    ...SHOWN,
    signed: z.boolean(),
    offered_through: z.enum(["session_token", "wallet_address"]).meta({
      description: "Whom it was offered to: the holder of the session's token, or anyone who names the wallet.",
    }),
  }),
  lost: z
    .object({
      way: z.string(),
      nonce: bytes32,
      transaction: transactionHash,
      lost_at: time.nullable(),
      sent_again_at: time.nullable(),
      asked_at: time.nullable(),
    })
    .exactOptional()
    .meta({
      description: "How the answer to the second order got lost after it was paid; the bait is a second payment of it.",
    }),
  signature: z
    .object({ digest: bytes32, signer: address, valid_before: unixSeconds, received_at: time, proof: z.string() })
    .exactOptional(),
}) satisfies z.ZodType<Behaviour>;

/** What a client was seen to do. */
export const DETECTED = z
  .object({
    exact_amount: z.boolean(),
    recipient_match: z.boolean(),
    network_match: z.boolean(),
    network: networkKey,
    asset: z.string(),
    protocol_version: z.enum(["v1", "v2"]),
    nonce: z.string().exactOptional(),
    authorization_window: z
      .object({
        valid_after: unixSeconds,
        valid_before: unixSeconds,
        /** Unbounded: it is any number that EIP-3009 allows. */
        seconds_left_when_received: z.number(),
        limit_seconds: count,
      })
      .exactOptional(),
    behaviour: BEHAVIOUR.exactOptional(),
  })
  .meta({ id: "Detected", description: "What the client was seen to do." }) satisfies z.ZodType<Detected>;
