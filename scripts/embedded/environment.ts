import { join } from "node:path";
import { loadKeys } from "./keys.ts";
import { localWitness } from "./local-witness.ts";
import { runningPostgres } from "./postgres.ts";
import { apiPlan } from "./services.ts";
import { readSettings, SettingError } from "./settings.ts";

/** Whether the environment has a database, and so describes a separate installation. */
export const isConfigured = (env: Readonly<Record<string, string | undefined>>): boolean =>
  Boolean(env.DATABASE_URL || env.DATABASE_URL_FILE);

/**
 * Returns the environment of the API of a running `npm start`, for other commands.
 * @throws SettingError if nothing runs in `DATA_DIR`
 */
export async function embeddedEnvironment(
  env: Readonly<Record<string, string | undefined>>,
): Promise<Readonly<Record<string, string | undefined>>> {
  const settings = await readSettings(env);
  const { dataDirectory } = settings;
  const postgres = await runningPostgres(join(dataDirectory, "postgres"));
  if (postgres === null)
    throw new SettingError(
      `Nothing is running in ${dataDirectory}. Run npm start first, set its DATA_DIR and PORT, or set DATABASE_URL and the API's other variables.`,
    );
  const services = { settings, keys: loadKeys(dataDirectory), ...postgres, logs: dataDirectory };
  // Commands need only the witness's key, so its port may differ.
  const { setting: witness } = await localWitness(services);
  return { ...apiPlan({ ...services, witness }).env };
}
