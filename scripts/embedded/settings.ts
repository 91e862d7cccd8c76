import { resolve } from "node:path";
import { eachNetwork, NETWORKS, type Network } from "../../api/platform/networks.ts";
import { freePort, isPortFree } from "./ports.ts";

export interface StartSettings {
  readonly dataDirectory: string;
  readonly port: number;
  /** The port of each local chain's node. */
  readonly rpcPorts: Readonly<Record<Network, number>>;
  readonly postgresPort: number;
}

/** The variable of each local chain's port, and the port without it. */
const RPC_PORTS = {
  "eip155:8453": { variable: "BASE_RPC_PORT", port: 8545 },
  "eip155:84532": { variable: "BASE_SEPOLIA_RPC_PORT", port: 8546 },
} as const satisfies Readonly<Record<Network, { readonly variable: string; readonly port: number }>>;

/** An invalid setting. The message names the variable to change. */
export class SettingError extends Error {}

/** Reads the settings of embedded mode from the environment. @throws SettingError */
export async function readSettings(env: Readonly<Record<string, string | undefined>>): Promise<StartSettings> {
  const settings = {
    dataDirectory: resolve(env.DATA_DIR || ".data"),
    port: portOf(env, "PORT", 4020),
    rpcPorts: eachNetwork((network) => portOf(env, RPC_PORTS[network].variable, RPC_PORTS[network].port)),
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

/** @throws SettingError if the environment is for a rehearsal on the test network */
export function demandBase(env: Readonly<Record<string, string | undefined>>): void {
  if (env.MAIN_NETWORK && env.MAIN_NETWORK !== NETWORKS["eip155:8453"].key)
    throw new SettingError("npm start always sells on the local Base. Unset MAIN_NETWORK.");
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

const namedPorts = (settings: StartSettings): readonly (readonly [name: string, port: number])[] => [
  ["PORT", settings.port],
  ...Object.values(NETWORKS).map(({ id }) => [RPC_PORTS[id].variable, settings.rpcPorts[id]] as const),
  ["POSTGRES_PORT", settings.postgresPort],
];

function portOf(env: Readonly<Record<string, string | undefined>>, name: string, otherwise: number): number {
  const text = env[name];
  if (text === undefined || text === "") return otherwise;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535)
    throw new SettingError(`${name} is wrong: expected a port from 1 to 65535, got ${JSON.stringify(text)}.`);
  return port;
}
