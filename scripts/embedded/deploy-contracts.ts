import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createHardhatRuntimeEnvironment } from "hardhat/hre";
import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";
import { getAddress, type Hex } from "viem";
import { COMMERCE_PAYMENTS } from "../../contracts/commerce-payments.ts";
import { LOG_ANCHOR } from "../../contracts/log-anchor.ts";
import { SETTLEMENT_BATCH } from "../../contracts/settlement-batch.ts";
import hardhatConfig from "../../hardhat.config.ts";
import ArbiterEvaluator from "../../ignition/modules/ArbiterEvaluator.ts";
import ArbiterOperator from "../../ignition/modules/ArbiterOperator.ts";
import Escrow from "../../ignition/modules/Escrow.ts";
import LogAnchor from "../../ignition/modules/LogAnchor.ts";
import SettlementBatch from "../../ignition/modules/SettlementBatch.ts";
import SmartWallet from "../../ignition/modules/SmartWallet.ts";
import { installAgentRegistries } from "./agent-registries.ts";
import { anvilClient } from "./anvil.ts";
import { buildContracts } from "./build-contracts.ts";
import { DEV_FUNDS } from "./chain.ts";
import { installCommercePayments } from "./commerce-payments.ts";
import { installCreateX } from "./createx.ts";
import {
  type DeploymentTarget,
  deployedEscrow,
  deployedEvaluator,
  deployedOperator,
  deployedWallet,
  deploymentTargets,
  type EscrowRoles,
  hasCommercePayments,
  hasShared,
  isDeployed,
  isJournalTrue,
  journalOf,
} from "./deployments.ts";
import { devAccount } from "./dev-accounts.ts";
import { fundAccounts } from "./usdc.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Deploys the contracts missing from a chain with Ignition, which keeps its journal in `folder`. */
async function deployContracts(
  folder: string,
  targets: readonly DeploymentTarget[],
  roles: EscrowRoles,
): Promise<void> {
  const hre = await createHardhatRuntimeEnvironment({ ...hardhatConfig, paths: { ignition: folder } }, {}, ROOT);
  await buildContracts(hre);
  for (const target of targets) {
    if (await isDeployed(folder, target, roles)) continue;
    if (!(await isJournalTrue(folder, target, roles)))
      rmSync(journalOf(folder, target), { recursive: true, force: true });
    await deployTo(hre, { folder, target, roles });
  }
}

interface Deployment {
  readonly folder: string;
  readonly target: DeploymentTarget;
  readonly roles: EscrowRoles;
}

async function deployTo(hre: HardhatRuntimeEnvironment, { folder, target, roles }: Deployment): Promise<void> {
  const hadWallet = (await deployedWallet(folder, target)) !== null;
  const connection = await hre.network.create({ network: target.hardhatName, override: { url: target.rpcUrl } });
  const options = {
    deploymentId: `chain-${target.network.chainId}`,
    defaultSender: devAccount(8).address,
    config: { requiredConfirmations: 1, blockPollingInterval: 50 },
  };
  const file = join(ROOT, "ignition", "parameters", `${target.hardhatName}.json`);
  const { Escrow: escrow, ...others } = JSON.parse(readFileSync(file, "utf8"));
  const full = { ...escrow, ...roles };
  const parameters = { ...others, Escrow: full, ArbiterOperator: { ...COMMERCE_PAYMENTS, ...full } };
  if (!hadWallet) await connection.ignition.deploy(SmartWallet, { ...options, parameters });
  if ((await deployedEscrow(folder, target, roles)) === null)
    await connection.ignition.deploy(Escrow, { ...options, parameters });
  const client = anvilClient(target.rpcUrl, target.network);
  if (!(await hasCommercePayments(target))) await installCommercePayments(client);
  await installAgentRegistries(client);
  if ((await deployedOperator(folder, target, roles)) === null)
    await connection.ignition.deploy(ArbiterOperator, { ...options, parameters });
  if ((await deployedEvaluator(folder, target, roles)) === null)
    await connection.ignition.deploy(ArbiterEvaluator, { ...options, parameters: { ArbiterEvaluator: { ...roles } } });
  await installCreateX(client);
  const create2 = (salt: Hex) => ({ ...options, strategy: "create2", strategyConfig: { salt } }) as const;
  if (!(await hasShared(target, SETTLEMENT_BATCH)))
    await connection.ignition.deploy(SettlementBatch, create2(SETTLEMENT_BATCH.salt));
  if (!(await hasShared(target, LOG_ANCHOR))) await connection.ignition.deploy(LogAnchor, create2(LOG_ANCHOR.salt));
  await connection.close();
  const wallet = await deployedWallet(folder, target);
  if (wallet === null || !(await isDeployed(folder, target, roles)))
    throw new Error(`Ignition skipped a contract on chain ${target.network.chainId}.`);
  if (hadWallet) return;
  await fundAccounts(client, target.network, { ...DEV_FUNDS, accounts: [wallet], wei: 0n });
}

const { BASE_RPC_PORT = "8545", BASE_SEPOLIA_RPC_PORT = "8546", ARBITER_ADDRESS, FEE_RECIPIENT_ADDRESS } = process.env;
if (!ARBITER_ADDRESS || !FEE_RECIPIENT_ADDRESS)
  throw new Error("ARBITER_ADDRESS and FEE_RECIPIENT_ADDRESS, the escrow's roles, are required.");
const [folder = "ignition"] = process.argv.slice(2);
const targets = deploymentTargets({ base: BASE_RPC_PORT, baseSepolia: BASE_SEPOLIA_RPC_PORT });
await deployContracts(folder, targets, {
  arbiter: getAddress(ARBITER_ADDRESS),
  feeRecipient: getAddress(FEE_RECIPIENT_ADDRESS),
});
