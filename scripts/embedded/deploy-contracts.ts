import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createHardhatRuntimeEnvironment } from "hardhat/hre";
import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";
import hardhatConfig from "../../hardhat.config.ts";
import SmartWallet from "../../ignition/modules/SmartWallet.ts";
import { anvilClient } from "./anvil.ts";
import { DEV_FUNDS } from "./chain.ts";
import { type DeploymentTarget, deployedWallet, deploymentTargets, journalOf } from "./deployments.ts";
import { devAccount } from "./dev-accounts.ts";
import { fundAccounts } from "./usdc.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Deploys the development contracts that a chain lacks, with Ignition, whose journal is kept in `folder`. */
async function deployContracts(folder: string, targets: readonly DeploymentTarget[]): Promise<void> {
  const hre = await createHardhatRuntimeEnvironment({ ...hardhatConfig, paths: { ignition: folder } }, {}, ROOT);
  await hre.tasks.getTask("build").run({ quiet: true });
  for (const target of targets) {
    if ((await deployedWallet(folder, target)) !== null) continue;
    // A journal of contracts that the chain does not have belongs to a chain that is gone.
    rmSync(journalOf(folder, target), { recursive: true, force: true });
    await deployTo(hre, folder, target);
  }
}

async function deployTo(hre: HardhatRuntimeEnvironment, folder: string, target: DeploymentTarget): Promise<void> {
  const connection = await hre.network.create({ network: target.hardhatName, override: { url: target.rpcUrl } });
  await connection.ignition.deploy(SmartWallet, {
    parameters: join(ROOT, "ignition", "parameters", `${target.hardhatName}.json`),
    deploymentId: `chain-${target.network.chainId}`,
    defaultSender: devAccount(8).address,
    config: { requiredConfirmations: 1, blockPollingInterval: 50 },
  });
  await connection.close();
  const wallet = await deployedWallet(folder, target);
  if (wallet === null) throw new Error(`Ignition left no smart wallet on chain ${target.network.chainId}.`);
  const client = anvilClient(target.rpcUrl, target.network);
  await fundAccounts(client, target.network, { ...DEV_FUNDS, accounts: [wallet], wei: 0n });
}

const { BASE_RPC_PORT = "8545", BASE_SEPOLIA_RPC_PORT = "8546" } = process.env;
const [folder = "ignition"] = process.argv.slice(2);
await deployContracts(folder, deploymentTargets({ base: BASE_RPC_PORT, baseSepolia: BASE_SEPOLIA_RPC_PORT }));
