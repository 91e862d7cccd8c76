import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Address } from "viem";
import { NETWORKS, type NetworkFacts } from "../../api/kernel/networks.ts";
import { anvilClient } from "./anvil.ts";

/** One local chain as Hardhat's configuration names it. */
export interface DeploymentTarget {
  readonly network: NetworkFacts;
  readonly hardhatName: "localBase" | "localBaseSepolia";
  readonly rpcUrl: string;
}

/** The two local chains, by the ports of their RPC servers. */
export const deploymentTargets = (ports: {
  base: number | string;
  baseSepolia: number | string;
}): readonly [DeploymentTarget, DeploymentTarget] => [
  { network: NETWORKS["eip155:8453"], hardhatName: "localBase", rpcUrl: `http://127.0.0.1:${ports.base}` },
  {
    network: NETWORKS["eip155:84532"],
    hardhatName: "localBaseSepolia",
    rpcUrl: `http://127.0.0.1:${ports.baseSepolia}`,
  },
];

/** Ignition's journal of one chain. */
export const journalOf = (folder: string, target: DeploymentTarget): string =>
  join(folder, "deployments", `chain-${target.network.chainId}`);

/** The smart wallet's address on the chain, or null when it is not there. */
export async function deployedWallet(folder: string, target: DeploymentTarget): Promise<Address | null> {
  const address = recordedWallet(join(journalOf(folder, target), "deployed_addresses.json"));
  if (address === undefined) return null;
  const code = await anvilClient(target.rpcUrl, target.network).getCode({ address });
  return code === undefined ? null : address;
}

/** Undefined, too, for a file that a kill left half-written: then the contracts are deployed again. */
function recordedWallet(file: string): Address | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8"))["SmartWallet#SmartWallet"];
  } catch {
    return undefined;
  }
}
