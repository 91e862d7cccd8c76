import { z } from "zod";
import { address, atomic, count, network, time } from "../platform/http/schema.ts";
import { LOG_STATUS } from "./log-status.ts";

export const HEALTH = z.object({ ok: z.literal(true), version: z.string() }).meta({ id: "Health" });

export const READY = z.object({ ok: z.literal(true) }).meta({ id: "Ready" });

const part = { ok: z.boolean() };

/** The result of the last check of every part. Null means currently unknown. */
export const STATUS = z
  .object({
    ...part,
    checked_at: time,
    version: z.string(),
    database: z.object(part),
    chains: z.array(
      z.object({
        network,
        ...part,
        block: count.nullable(),
        finalized_block: count.nullable(),
        lag_seconds: count.nullable(),
        nodes: z.array(z.object({ rank: count, ...part, block: count.nullable(), lag_seconds: count.nullable() })),
      }),
    ),
    usdc: z.array(
      z.object({ network, ...part, paused: z.boolean().nullable(), receiver_blacklisted: z.boolean().nullable() }),
    ),
    indexer: z.object({
      ...part,
      ready: z.boolean(),
      block: count.nullable(),
      lag_seconds: count.nullable(),
      reason: z.string().nullable(),
    }),
    settlement: z.object({
      ...part,
      mode: z.enum(["in-process", "remote"]),
      address: address.exactOptional(),
      balance_wei: atomic.exactOptional(),
    }),
    senders: z.array(
      z.object({
        role: z.enum(["facilitator", "arbiter"]),
        network,
        address,
        ...part,
        balance_wei: atomic.nullable(),
        cost_wei: atomic.nullable(),
        unmined: count.nullable(),
        oldest_unmined_seconds: count.nullable(),
      }),
    ),
    jobs: z.array(
      z.object({ name: z.string(), ...part, runs: count, failures: count, last_success_at: time.nullable() }),
    ),
    log: LOG_STATUS,
    payments: z.object({ unresolved: count, oldest_unresolved_seconds: z.number().min(0).nullable() }),
  })
  .meta({ id: "Status" });

export type Status = z.infer<typeof STATUS>;
export type ChainStatus = Status["chains"][number];
export type SenderStatus = Status["senders"][number];

/** An account whose transactions the service sends and pays gas for. */
export type Sender = Pick<SenderStatus, "role" | "network" | "address">;
