import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Address, getAddress, type Hex, isAddress, isHex, zeroAddress } from "viem";
import { type Environment, withFiles } from "../api/platform/config/environment.ts";
import { NETWORKS, type NetworkFacts } from "../api/platform/networks.ts";

/** The networks that the escrow can be deployed to, by Hardhat's names, and where their RPC URL comes from. */
const CHAINS = {
  base: { facts: NETWORKS["eip155:8453"], url: "BASE_RPC_URL" },
  baseSepolia: { facts: NETWORKS["eip155:84532"], url: "BASE_SEPOLIA_RPC_URL" },
  localBase: { facts: NETWORKS["eip155:8453"], url: null },
  localBaseSepolia: { facts: NETWORKS["eip155:84532"], url: null },
} as const;
type ChainName = keyof typeof CHAINS;

export interface DeploySettings {
  readonly network: ChainName;
  readonly facts: NetworkFacts;
  readonly privateKey: Hex;
  readonly roles: Readonly<Record<"usdc" | "arbiter" | "feeRecipient", Address>>;
}

/** Where a role comes from: the environment first, then `ignition/parameters/<network>.json`. */
const ROLES = { usdc: null, arbiter: "ARBITER_ADDRESS", feeRecipient: "FEE_RECIPIENT_ADDRESS" } as const;

/**
 * What a deployment needs.
 * @throws Error that names everything missing or wrong, and where it is expected.
 */
export function readDeploySettings(network: string | undefined, given: Environment, root: string): DeploySettings {
  if (network === undefined || !isChainName(network))
    throw new Error(`--network is required: one of ${Object.keys(CHAINS).join(", ")}; got ${JSON.stringify(network)}.`);
  const { facts, url } = CHAINS[network];
  const { environment: env, unread } = withFiles(["DEPLOYER_PRIVATE_KEY"], given);
  const problems = [...unread.values()];
  if (url !== null && !env[url]) problems.push(`${url}: the JSON-RPC URL of a node of chain ${facts.chainId}`);
  const privateKey = env.DEPLOYER_PRIVATE_KEY;
  if (unread.size === 0 && (!isHex(privateKey) || privateKey.length !== 66))
    problems.push(
      "DEPLOYER_PRIVATE_KEY: 32 bytes as 0x and 64 hex digits, for an account that holds ETH on that chain",
    );
  const file = join("ignition", "parameters", `${network}.json`);
  const known = parametersIn(join(root, file));
  const role = (name: keyof typeof ROLES): Address => {
    const variable = ROLES[name];
    const text = (variable && env[variable]) || known[name];
    if (text !== undefined && isAddress(text) && text !== zeroAddress) return getAddress(text);
    const places = variable === null ? "" : `${variable}, or `;
    problems.push(`${places}Escrow.${name} in ${file}: a nonzero address; got ${JSON.stringify(text)}`);
    return zeroAddress;
  };
  const roles = { usdc: role("usdc"), arbiter: role("arbiter"), feeRecipient: role("feeRecipient") };
  if (problems.length > 0 || !isHex(privateKey))
    throw new Error(`The escrow cannot be deployed to ${network}. Missing or wrong:\n  ${problems.join("\n  ")}`);
  return { network, facts, privateKey, roles };
}

const isChainName = (name: string): name is ChainName => Object.hasOwn(CHAINS, name);

function parametersIn(file: string): Readonly<Record<string, string | undefined>> {
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")).Escrow ?? {}) : {};
}
