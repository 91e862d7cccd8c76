import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Address, getAddress, type Hex, isAddress, isHex, zeroAddress } from "viem";
import { type Environment, withFiles } from "../api/platform/config/environment.ts";
import { NETWORKS, type NetworkFacts } from "../api/platform/networks.ts";

/** The networks to which the contracts can be deployed. The local ones have the ports of `npm start`. */
const CHAINS = {
  base: { facts: NETWORKS["eip155:8453"], local: null },
  baseSepolia: { facts: NETWORKS["eip155:84532"], local: null },
  localBase: { facts: NETWORKS["eip155:8453"], local: { variable: "BASE_RPC_PORT", port: "8545" } },
  localBaseSepolia: { facts: NETWORKS["eip155:84532"], local: { variable: "BASE_SEPOLIA_RPC_PORT", port: "8546" } },
} as const;
type ChainName = keyof typeof CHAINS;

export interface DeploySettings {
  readonly network: ChainName;
  readonly facts: NetworkFacts;
  readonly rpcUrl: string;
  /** The deployer's key; null for a dry run without one. */
  readonly privateKey: Hex | null;
  readonly roles: Readonly<Record<"usdc" | "arbiter" | "feeRecipient", Address>>;
}

/** The variable of each role. Without it, the role is read from `ignition/parameters/<network>.json`. */
const ROLES = { usdc: null, arbiter: "ARBITER_ADDRESS", feeRecipient: "FEE_RECIPIENT_ADDRESS" } as const;

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/**
 * Reads the settings of a deployment. A dry run does not send anything, so it does not need a deployer.
 * @throws Error that lists every missing or wrong setting, and where it is expected
 */
export function readDeploySettings(network: string | undefined, given: Environment, isDryRun = false): DeploySettings {
  if (network === undefined || !isChainName(network))
    throw new Error(`--network is required: one of ${Object.keys(CHAINS).join(", ")}; got ${JSON.stringify(network)}.`);
  const { facts, local } = CHAINS[network];
  const { environment: env, unread } = withFiles(["DEPLOYER_PRIVATE_KEY"], given);
  const problems = [...unread.values()];
  const remoteUrl = env[facts.rpcVariable]?.split(",")[0]?.trim() ?? "";
  const rpcUrl = local === null ? remoteUrl : `http://127.0.0.1:${env[local.variable] || local.port}`;
  if (!URL.canParse(rpcUrl))
    problems.push(`${facts.rpcVariable}: the JSON-RPC URL of a node of chain ${facts.chainId}`);
  const privateKey = env.DEPLOYER_PRIVATE_KEY || null;
  const isKey = isHex(privateKey) && privateKey.length === 66;
  if (unread.size === 0 && !isKey && !(isDryRun && privateKey === null))
    problems.push(
      "DEPLOYER_PRIVATE_KEY: 32 bytes as 0x and 64 hex digits, for an account that holds ETH on that chain",
    );
  const file = join("ignition", "parameters", `${network}.json`);
  const known = parametersIn(join(ROOT, file));
  const role = (name: keyof typeof ROLES): Address => {
    const variable = ROLES[name];
    const text = (variable && env[variable]) || known[name];
    if (text !== undefined && isAddress(text) && text !== zeroAddress) return getAddress(text);
    const places = variable === null ? "" : `${variable}, or `;
    problems.push(`${places}Escrow.${name} in ${file}: a nonzero address; got ${JSON.stringify(text)}`);
    return zeroAddress;
  };
  const roles = { usdc: role("usdc"), arbiter: role("arbiter"), feeRecipient: role("feeRecipient") };
  if (problems.length > 0)
    throw new Error(`Cannot deploy to ${network}. Missing or wrong:\n  ${problems.join("\n  ")}`);
  return { network, facts, rpcUrl, privateKey: isKey ? privateKey : null, roles };
}

const isChainName = (name: string): name is ChainName => Object.hasOwn(CHAINS, name);

function parametersIn(file: string): Readonly<Record<string, string | undefined>> {
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")).Escrow ?? {}) : {};
}
