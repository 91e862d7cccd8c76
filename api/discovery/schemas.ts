import { z } from "zod";
import { atomic, network, networkKey, time, url } from "../platform/http/schema.ts";
import type { agentCard, registration } from "./agent-card.ts";
import type { manifest } from "./manifest.ts";

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
        scheme: z.enum(["exact", "auth-capture", "commerce"]),
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
    signIn: z
      .array(
        z.object({
          resource: url,
          method: z.enum(["GET", "POST"]),
          extension: z.string(),
          header: z.string(),
          network,
          mimeType: z.literal("application/json"),
          description: z.string(),
        }),
      )
      .meta({ description: "Routes that are free for the wallet that signs in." }),
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
  .meta({ id: "AgentCard" }) satisfies z.ZodType<Awaited<ReturnType<typeof agentCard>>>;

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

export const OPEN_API = z.looseObject({ openapi: z.literal("3.1.0"), info: schema, paths: schema });
