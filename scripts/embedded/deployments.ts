import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Address } from "viem";
import { NETWORKS, type NetworkFacts } from "../../api/platform/networks.ts";

/** One local chain as named in Hardhat's configuration. */
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

/** The contracts on a local chain whose addresses depend on their deployment. */
export type LocalContracts = Readonly<Record<"wallet" | "escrow" | "operator" | "evaluator", Address>>;

const FUTURES = {
  wallet: "SmartWallet#SmartWallet",
  escrow: "Escrow#Escrow",
  operator: "ArbiterOperator#ArbiterOperator",
  evaluator: "ArbiterEvaluator#ArbiterEvaluator",
} as const;

/**
 * Returns the contracts of one chain, from Ignition's journal.
 * @throws Error if one of them has not been deployed
 */
export function localContracts(folder: string, { network }: DeploymentTarget): LocalContracts {
  const file = join(folder, "deployments", `chain-${network.chainId}`, "deployed_addresses.json");
  const recorded: Readonly<Record<string, Address>> = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  const addressOf = (name: keyof LocalContracts): Address => {
    const address = recorded[FUTURES[name]];
    if (address === undefined)
      throw new Error(
        `The contract ${FUTURES[name]} is not deployed on chain ${network.chainId}, according to ${file}.`,
      );
    return address;
  };
  return {
    wallet: addressOf("wallet"),
    escrow: addressOf("escrow"),
    operator: addressOf("operator"),
    evaluator: addressOf("evaluator"),
  };
}
