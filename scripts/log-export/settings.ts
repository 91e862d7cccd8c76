import { z } from "zod";
import { url } from "../../api/config-values.ts";
import { LOG_VARIABLES, policyProblem, type WitnessPolicy, witnessPolicy } from "../../api/log/witness/settings.ts";

const { LOG_WITNESSES, LOG_QUORUM, LOG_WITNESS_WAIT } = LOG_VARIABLES;

const ENVIRONMENT = z.object({
  DATABASE_URL: url("a PostgreSQL URL, like postgres://api:secret@localhost:5432/trust", ["postgres:", "postgresql:"]),
  LOG_WITNESSES,
  LOG_QUORUM,
  LOG_WITNESS_WAIT,
});

export interface ExportSettings {
  readonly databaseUrl: string;
  readonly policy: WitnessPolicy;
  /** Whether they say anything of witnesses, be it that none is needed. */
  readonly nameWitnesses: boolean;
}

/** The settings, or what is wrong with the environment. No key is among them. */
export function readExportSettings(
  env: Readonly<Record<string, string | undefined>>,
): ExportSettings | { readonly problem: string } {
  const { data, error } = ENVIRONMENT.safeParse(
    Object.fromEntries(Object.entries(env).filter(([, value]) => value !== "")),
  );
  const problems = (error?.issues ?? []).map(({ path: [name], message }) => `${String(name)} is wrong: ${message}`);
  if (data === undefined) return { problem: problems.join("\n") };
  const problem = policyProblem(data);
  if (problem !== null) return { problem };
  const nameWitnesses = data.LOG_WITNESSES.length > 0 || data.LOG_QUORUM !== undefined;
  return { databaseUrl: data.DATABASE_URL, policy: witnessPolicy(data), nameWitnesses };
}
