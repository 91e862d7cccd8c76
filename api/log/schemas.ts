import { z } from "zod";
import { ENTRY_TYPES } from "../../packages/verifier/src/tlog/entry-types.ts";
import { count, SERVICE, time, url } from "../platform/http/schema.ts";
import type { entryDocument, logOverview, placeDocument } from "./log-overview.ts";

export const entryType = z.enum(ENTRY_TYPES);

const generation = z
  .int()
  .min(1)
  .meta({ description: "1 for the service's first log. Each later log has its own origin." });
const index = count.meta({ description: "The entry's index in the log, from 0." });
const vkey = z
  .string()
  .regex(/^[^\s+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/=]+$/)
  .meta({ description: "A verifier key of C2SP signed-note." });
const origin = z.string().meta({ description: "The log's name: the first line of its checkpoints." });
const witnessed_by = z
  .array(z.string())
  .meta({ description: "The witnesses that have cosigned a checkpoint that covers the entry." });

const PLACE = { generation, index, type: entryType, proof_url: url } as const;

export const LOG_PLACE = z.object({ ...PLACE, witnessed_by }).meta({ id: "LogPlace" }) satisfies z.ZodType<
  ReturnType<typeof placeDocument>
>;

const LISTED = { ...PLACE, id: z.string(), at: time, record_url: url.nullable(), entry_url: url } as const;

export const LOG_ENTRY = z
  .object({
    ...LISTED,
    witnessed_by,
    entry: z.unknown().meta({ description: "The entry as logged; its canonical JSON (RFC 8785) is the leaf." }),
  })
  .meta({ id: "LogEntry" }) satisfies z.ZodType<ReturnType<typeof entryDocument>>;

export const LOG = z
  .object({
    service: SERVICE,
    origin,
    generation,
    vkey: vkey.nullable().meta({ description: "The log's key, a vkey of C2SP signed-note; null until it has begun." }),
    url,
    checkpoint_url: url,
    checkpoint: z
      .object({
        size: count,
        root_hash: z
          .string()
          .regex(/^[A-Za-z0-9+/]{43}=$/)
          .meta({ description: "32 bytes in base64, as in the note." }),
        at: time,
        note: z.string().meta({ description: "The signed note, with the witnesses' cosignatures." }),
      })
      .nullable(),
    quorum: count.meta({
      description: "The number of witnesses that must cosign a checkpoint before the service treats it as witnessed.",
    }),
    witnesses: z.array(z.object({ name: z.string(), vkey, size: count.nullable(), cosigned_at: time.nullable() })),
    policy: z.string().nullable().meta({ description: "A policy file (C2SP tlog-policy) for verifiers." }),
    entry_types: z.array(z.object({ type: entryType, meaning: z.string() })),
    newest: z.array(z.object(LISTED)),
    search: z
      .object({ id: z.string(), found: z.array(LOG_ENTRY) })
      .exactOptional()
      .meta({ description: "Present if the request has an id." }),
    generations: z.array(
      z.object({ generation, origin, vkey, started_at: time, ended: z.boolean(), checkpoint_url: url }),
    ),
  })
  .meta({ id: "Log" }) satisfies z.ZodType<ReturnType<typeof logOverview>>;
