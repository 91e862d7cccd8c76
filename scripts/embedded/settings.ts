import { resolve } from "node:path";
import { freePort, isPortFree } from "./ports.ts";

export interface StartSettings {
  readonly dataDirectory: string;
  readonly port: number;
  readonly baseRpcPort: number;
  readonly baseSepoliaRpcPort: number;
  readonly postgresPort: number;
}

/** An invalid setting. The message names the variable to change. */
export class SettingError extends Error {}

/** Reads the settings of embedded mode from the environment. */
export async function readSettings(env: Readonly<Record<string, string | undefined>>): Promise<StartSettings> {
  const settings = {
    dataDirectory: resolve(env.DATA_DIR || ".data"),
    port: portOf(env, "PORT", 4020),
    baseRpcPort: portOf(env, "BASE_RPC_PORT", 8545),
    baseSepoliaRpcPort: portOf(env, "BASE_SEPOLIA_RPC_PORT", 8546),
    postgresPort: portOf(env, "POSTGRES_PORT", await freePort()),
  };
  const seen = new Map<number, string>();
  for (const [name, port] of namedPorts(settings)) {
    const other = seen.get(port);
    if (other !== undefined)
      throw new SettingError(`${other} and ${name} are both ${port}. Give them different ports.`);
    seen.set(port, name);
  }
  return settings;
}

/** @throws SettingError with the first port that another program is using */
export async function demandFreePorts(settings: StartSettings): Promise<void> {
  for (const [name, port] of namedPorts(settings)) {
    if ((await isPortFree(port)) && (await isPortFree(port, "127.0.0.1"))) continue;
    throw new SettingError(
      `Port ${port} is in use or not allowed. Set ${name} to a free port, such as ${name}=${await freePort()}.`,
    );
  }
}

const namedPorts = (settings: StartSettings) =>
  [
    ["PORT", settings.port],
    ["BASE_RPC_PORT", settings.baseRpcPort],
    ["BASE_SEPOLIA_RPC_PORT", settings.baseSepoliaRpcPort],
    ["POSTGRES_PORT", settings.postgresPort],
  ] as const;

function portOf(env: Readonly<Record<string, string | undefined>>, name: string, otherwise: number): number {
  const text = env[name];
  if (text === undefined || text === "") return otherwise;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535)
    throw new SettingError(`${name} is wrong: expected a port from 1 to 65535, got ${JSON.stringify(text)}.`);
  return port;
}
