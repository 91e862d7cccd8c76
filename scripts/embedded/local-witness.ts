import { join } from "node:path";
import { logOrigin } from "../../api/log/log-paths.ts";
import { logKey } from "../../api/platform/config/values.ts";
import { noteSigner } from "../witness/signer.ts";
import type { ProcessPlan } from "./guarded-process.ts";
import { freePort } from "./ports.ts";
import { program, type ServiceParts } from "./services.ts";

const NAME = "localhost/witness";

export interface LocalWitness {
  readonly plan: ProcessPlan;
  readonly url: string;
  /** The value for `LOG_WITNESSES`. */
  readonly setting: string;
}

/** Creates a witness of the local service's log, on a separate port. */
export async function localWitness({
  settings,
  keys,
  logs,
}: Pick<ServiceParts, "settings" | "keys" | "logs">): Promise<LocalWitness> {
  const { LOG_KEY, LOG_GENERATION, LOG_ORIGIN } = process.env;
  const origin = LOG_ORIGIN || logOrigin(`http://localhost:${settings.port}`, Number(LOG_GENERATION || 1));
  const log = await noteSigner(origin, "log", logKey({ LOG_KEY: LOG_KEY || undefined, SIGNING_KEY: keys.signingKey }));
  const own = await noteSigner(NAME, "witness", Buffer.from(keys.witnessKey, "base64url"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const env = {
    ...process.env,
    WITNESS_NAME: NAME,
    WITNESS_KEY: keys.witnessKey,
    WITNESS_LOGS: log.key.vkey,
    WITNESS_STATE: join(settings.dataDirectory, "witness.db"),
    WITNESS_HOST: "127.0.0.1",
    WITNESS_PORT: String(port),
  };
  return {
    plan: { ...program("scripts/witness.ts", logs, "witness.log"), env },
    url,
    setting: `${own.key.vkey} ${url}`,
  };
}
