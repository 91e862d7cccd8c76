import { z } from "zod";
import { type Environment, readEnvironment } from "../../api/platform/config/environment.ts";
import { key32, whole } from "../../api/platform/config/values.ts";
import { Refusal } from "../../packages/verifier/src/refusal.ts";
import { isKeyName, parseVerifierKey, type VerifierKey } from "../../packages/verifier/src/tlog/verifier-key.ts";

const logKeys = z.string().transform((text, context) =>
  text.split(",").flatMap((vkey): readonly VerifierKey[] => {
    try {
      return [parseVerifierKey(vkey.trim())];
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      context.addIssue({ code: "custom", message: `expected vkeys of logs, comma-separated; ${error.message}` });
      return [];
    }
  }),
);

const ENVIRONMENT = z.object({
  WITNESS_NAME: z
    .string()
    .refine(isKeyName, "expected a name without spaces and plus signs, such as witness.example/w1"),
  WITNESS_KEY: key32("the Ed25519 private key that cosigns"),
  WITNESS_LOGS: logKeys,
  WITNESS_STATE: z.string().min(1, "expected the file that records cosigned checkpoints; do not lose it"),
  WITNESS_PORT: whole(0, 65_535).default(4030),
  WITNESS_HOST: z.string().min(1).default("127.0.0.1"),
});

export interface WitnessSettings {
  readonly name: string;
  readonly seed: Uint8Array;
  /** The keys by origin, which is the name of a log's key. */
  readonly logs: ReadonlyMap<string, readonly VerifierKey[]>;
  /** The path of the SQLite database. */
  readonly stateFile: string;
  readonly port: number;
  readonly host: string;
}

/** Returns the settings, or the problem with the environment. */
export function readWitnessSettings(environment: Environment): WitnessSettings | { readonly problem: string } {
  const { data, problems } = readEnvironment(ENVIRONMENT, environment);
  if (data === undefined) return { problem: problems.join("\n") };
  return {
    name: data.WITNESS_NAME,
    seed: Buffer.from(data.WITNESS_KEY, "base64url"),
    logs: Map.groupBy(data.WITNESS_LOGS, ({ name }) => name),
    stateFile: data.WITNESS_STATE,
    port: data.WITNESS_PORT,
    host: data.WITNESS_HOST,
  };
}
