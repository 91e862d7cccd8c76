import { join } from "node:path";
import { type Config, parseConfig } from "../../api/platform/config/config.ts";
import { loadKeys } from "./keys.ts";
import { localWitness } from "./local-witness.ts";
import { runningPostgres } from "./postgres.ts";
import { apiPlan } from "./services.ts";
import { readSettings, SettingError } from "./settings.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the environment of the API, for other commands: this one if it names a database, else the environment of a
 * running `npm start`.
 * @throws SettingError if it names none and nothing runs in `DATA_DIR`
 */
export async function apiEnvironment(env: Environment): Promise<Environment> {
  if (env.DATABASE_URL || env.DATABASE_URL_FILE) return env;
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

/** Returns the settings of the API. @throws SettingError if there are none, or one is wrong */
export async function readConfig(): Promise<Config> {
  const config = parseConfig(await apiEnvironment(process.env));
  if ("problem" in config) throw new SettingError(config.problem);
  return config;
}
