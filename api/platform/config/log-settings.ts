import { z } from "zod";
import { Refusal } from "../../../packages/verifier/src/refusal.ts";
import { NOTE_TYPE, parseVerifierKey, type VerifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import { isHttp, key32, logKey, whole } from "./values.ts";

/** A witness that cosigns checkpoints (C2SP tlog-witness). Prefixes have no trailing slash. */
export interface Witness {
  readonly key: VerifierKey;
  readonly submission: string;
  readonly monitoring: string;
}

export interface WitnessPolicy {
  readonly witnesses: readonly Witness[];
  /** How many of them must cosign a checkpoint before it counts as witnessed. */
  readonly quorum: number;
  /** How long an older, witnessed checkpoint is served before a newer one without enough witnesses, in milliseconds. */
  readonly waitMs: number;
}

const FORM = "expected a witness's vkey, its URL and, if different, its monitoring URL, separated by spaces";
const MOST_WITNESSES = 32;
const ORIGIN = "expected the log's origin, an address without its scheme, like trust.example/log";

/** Whether a path can be appended to the text. */
const isPrefix = (text: string): boolean => isHttp(text) && !/[?#]/.test(text);

function witnessOf(item: string): Witness | { readonly problem: string } {
  const [vkey = "", submission = "", monitoring = submission, ...more] = item.split(/\s+/);
  if (![submission, monitoring].every(isPrefix) || more.length > 0) return { problem: FORM };
  try {
    const key = parseVerifierKey(vkey);
    if (key.type === NOTE_TYPE.ed25519)
      return {
        problem: `${FORM}; the vkey of ${key.name} is of type 0x01, a log's: a witness's is of type 0x04 or 0x06`,
      };
    return { key, submission: submission.replace(/\/$/, ""), monitoring: monitoring.replace(/\/$/, "") };
  } catch (error) {
    if (error instanceof Refusal) return { problem: `${FORM}; ${error.message}` };
    throw error;
  }
}

const publicKeyOf = ({ key }: Witness): string => Buffer.from(key.publicKey).toString("hex");

const witnessList = z.string().transform((text, context): readonly Witness[] => {
  const items = text.split(",").map((item) => witnessOf(item.trim()));
  const witnesses = items.filter((item) => "key" in item);
  const refuse = (message: string) => context.addIssue({ code: "custom", message });
  for (const item of items) if ("problem" in item) refuse(item.problem);
  if (new Set(witnesses.map(publicKeyOf)).size < witnesses.length)
    refuse("expected each key once, because a key is one witness");
  if (items.length > MOST_WITNESSES) refuse(`expected at most ${MOST_WITNESSES} witnesses, separated by commas`);
  return witnesses;
});

/** The variables of the transparency log. */
export const LOG_VARIABLES = {
  LOG_KEY: key32("the Ed25519 private key that signs the log's checkpoints").optional(),
  LOG_GENERATION: whole(1, 1_000).default(1),
  LOG_ORIGIN: z
    .string()
    .regex(/^[a-z0-9.-]+(:\d{1,5})?(\/[A-Za-z0-9._~-]+)*$/, ORIGIN)
    .max(255, ORIGIN)
    .optional(),
  LOG_WITNESSES: witnessList.default([]),
  LOG_QUORUM: whole(0, MOST_WITNESSES).optional(),
  LOG_WITNESS_WAIT: whole(0, 3_600).default(10),
  LOG_ANCHOR_SECONDS: whole(0, 31_536_000).optional(),
};

/** The settings of the transparency log. */
export interface LogSettings {
  /** Its Ed25519 key. */
  readonly key: Uint8Array;
  /** The number of the service's current log. */
  readonly generation: number;
  /** Its name; null if it follows from the service's address. */
  readonly origin: string | null;
  readonly witnessed: WitnessPolicy;
  /** The seconds from one anchor on Base to the next, 0 for never; null if not set. */
  readonly anchorSeconds: number | null;
}

type Given = z.infer<z.ZodObject<typeof LOG_VARIABLES>>;

/** More than half of the witnesses, unless set otherwise. */
const witnessPolicy = ({ LOG_WITNESSES: witnesses, LOG_QUORUM, LOG_WITNESS_WAIT }: Given): WitnessPolicy => ({
  witnesses,
  quorum: LOG_QUORUM ?? (witnesses.length === 0 ? 0 : Math.floor(witnesses.length / 2) + 1),
  waitMs: LOG_WITNESS_WAIT * 1_000,
});

export const logSettings = (given: Given & { readonly SIGNING_KEY: string }): LogSettings => ({
  key: logKey(given),
  generation: given.LOG_GENERATION,
  origin: given.LOG_ORIGIN ?? null,
  witnessed: witnessPolicy(given),
  anchorSeconds: given.LOG_ANCHOR_SECONDS ?? null,
});

/** Returns a contradiction between the settings, or null. */
export const policyProblem = (given: Given | undefined): string | null =>
  given === undefined || (given.LOG_QUORUM ?? 0) <= given.LOG_WITNESSES.length
    ? null
    : `LOG_QUORUM is wrong: ${given.LOG_QUORUM} witnesses are required, but LOG_WITNESSES lists ${given.LOG_WITNESSES.length}, so no checkpoint would ever count as witnessed.`;
