import { z } from "zod";
import { address, atomic, count, network, networkKey, SERVICE, time, url, usd } from "../kernel/schema.ts";
import type { statusDocument } from "../operations/status.ts";
import type { agentCard } from "./agent-card.ts";
import type { registration } from "./agent-registration.ts";
import type { manifest } from "./manifest.ts";

const named = { path: z.string(), summary: z.string() };

export const HOME = z
  .object({
    service: SERVICE,
    version: z.string(),
    url,
    paid: z.array(z.object({ id: z.string(), method: z.literal("POST"), ...named, price: usd, network })),
    free: z.array(z.object({ method: z.literal("GET"), ...named })),
  })
  .meta({ id: "Home" });

export const HEALTH = z.object({ ok: z.literal(true), version: z.string() }).meta({ id: "Health" });

const part = { ok: z.boolean() };

/** Null is what is not known at the moment. */
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
      }),
    ),
    indexer: z.object({ ...part, ready: z.boolean(), block: count.nullable(), lag_seconds: count.nullable() }),
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
        unmined: count.nullable(),
        oldest_unmined_seconds: count.nullable(),
      }),
    ),
    jobs: z.array(
      z.object({ name: z.string(), ...part, runs: count, failures: count, last_success_at: time.nullable() }),
    ),
    payments: z.object({ unresolved: count, oldest_unresolved_seconds: z.number().min(0).nullable() }),
  })
  .meta({ id: "Status" }) satisfies z.ZodType<ReturnType<typeof statusDocument>>;

/** A JSON Schema. */
const schema = z.looseObject({});

export const MANIFEST = z
  .object({
    x402Version: z.literal(2),
    facilitator: url,
    lastUpdated: time,
    resources: z.array(
      z.object({
        resource: url,
        type: z.literal("http"),
        method: z.literal("POST"),
        scheme: z.enum(["exact", "commerce"]),
        network,
        networkKey,
        asset: z.string(),
        amount: atomic,
        price: z.string(),
        mimeType: z.literal("application/json"),
        description: z.string(),
        payTo: z.string(),
        inputSchema: schema,
        outputSchema: schema,
      }),
    ),
  })
  .meta({ id: "Manifest" }) satisfies z.ZodType<ReturnType<typeof manifest>>;

const texts = z.array(z.string()).min(1);

export const AGENT_CARD = z
  .object({
    name: z.string(),
    description: z.string(),
    supportedInterfaces: z.array(z.object({ url, protocolBinding: z.string(), protocolVersion: z.string() })).min(1),
    provider: z.object({ organization: z.string(), url }),
    version: z.string(),
    documentationUrl: url,
    iconUrl: url,
    capabilities: z.object({ streaming: z.literal(false), pushNotifications: z.literal(false) }),
    defaultInputModes: texts,
    defaultOutputModes: texts,
    skills: z
      .array(
        z.object({
          id: z.string(),
          name: z.string(),
          description: z.string(),
          tags: texts,
          inputModes: texts,
          outputModes: texts,
        }),
      )
      .min(1),
    url,
    preferredTransport: z.string(),
    protocolVersion: z.string(),
    supportsAuthenticatedExtendedCard: z.literal(false),
    signatures: z.array(z.object({ protected: z.string(), signature: z.string() })).min(1),
  })
  .meta({ id: "AgentCard" }) satisfies z.ZodType<ReturnType<typeof agentCard>>;

export const REGISTRATION = z
  .object({
    type: z.literal("https://eips.ethereum.org/EIPS/eip-8004#registration-v1"),
    name: z.string(),
    description: z.string(),
    image: url,
    services: z.array(z.object({ name: z.string(), endpoint: z.string(), version: z.string().exactOptional() })),
    x402Support: z.literal(true),
    active: z.literal(true),
    registrations: z.array(z.never()),
  })
  .meta({ id: "AgentRegistration" }) satisfies z.ZodType<ReturnType<typeof registration>>;

/** An OpenAPI 3.1 document. */
export const OPEN_API = z.looseObject({ openapi: z.literal("3.1.0"), info: schema, paths: schema });
