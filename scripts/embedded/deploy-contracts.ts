import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createHardhatRuntimeEnvironment } from "hardhat/hre";
import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";
import { type Address, getAddress, type Hex } from "viem";
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
import { anvilClient } from "./anvil.ts";
import { buildContracts } from "./build-contracts.ts";
import { DEV_FUNDS } from "./chain.ts";
import { type DeploymentTarget, deploymentTargets, localContracts } from "./deployments.ts";
import { devAccount } from "./dev-accounts.ts";
import { installAgentRegistries, installCommercePayments, installCreateX } from "./install-contracts.ts";
import { fundAccounts } from "./usdc.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The arbiter of the local escrows and operators, and the recipient of their fees. */
interface EscrowRoles {
  readonly arbiter: Address;
  readonly feeRecipient: Address;
}

/** Deploys the contracts to a new chain with Ignition, whose journal is in `folder`. */
async function deployTo(
  hre: HardhatRuntimeEnvironment,
  { folder, target, roles }: { folder: string; target: DeploymentTarget; roles: EscrowRoles },
): Promise<void> {
  const connection = await hre.network.create({ network: target.hardhatName, override: { url: target.rpcUrl } });
  const { ignition } = connection;
  const options = {
    deploymentId: `chain-${target.network.chainId}`,
    defaultSender: devAccount(8).address,
    config: { requiredConfirmations: 1, blockPollingInterval: 50 },
  };
  const file = join(ROOT, "ignition", "parameters", `${target.hardhatName}.json`);
  const { Escrow: escrow, ...others } = JSON.parse(readFileSync(file, "utf8"));
  const full = { ...escrow, ...roles };
  const parameters = { ...others, Escrow: full, ArbiterOperator: { ...COMMERCE_PAYMENTS, ...full } };
  const client = anvilClient(target.rpcUrl, target.network);
  await ignition.deploy(SmartWallet, { ...options, parameters });
  await ignition.deploy(Escrow, { ...options, parameters });
  await installCommercePayments(client);
  await installAgentRegistries(client);
  await ignition.deploy(ArbiterOperator, { ...options, parameters });
  await ignition.deploy(ArbiterEvaluator, { ...options, parameters: { ArbiterEvaluator: { ...roles } } });
  await installCreateX(client);
  const create2 = (salt: Hex) => ({ ...options, strategy: "create2", strategyConfig: { salt } }) as const;
  await ignition.deploy(SettlementBatch, create2(SETTLEMENT_BATCH.salt));
  await ignition.deploy(LogAnchor, create2(LOG_ANCHOR.salt));
  await connection.close();
  const { wallet } = localContracts(folder, target);
  await fundAccounts(client, target.network, { ...DEV_FUNDS, accounts: [wallet], wei: 0n });
}

const { BASE_RPC_PORT = "8545", BASE_SEPOLIA_RPC_PORT = "8546", ARBITER_ADDRESS, FEE_RECIPIENT_ADDRESS } = process.env;
if (!ARBITER_ADDRESS || !FEE_RECIPIENT_ADDRESS)
  throw new Error("ARBITER_ADDRESS and FEE_RECIPIENT_ADDRESS, the escrow's roles, are required.");
const [folder = "ignition"] = process.argv.slice(2);
const hre = await createHardhatRuntimeEnvironment({ ...hardhatConfig, paths: { ignition: folder } }, {}, ROOT);
await buildContracts(hre);
const roles = { arbiter: getAddress(ARBITER_ADDRESS), feeRecipient: getAddress(FEE_RECIPIENT_ADDRESS) };
for (const target of deploymentTargets({ base: BASE_RPC_PORT, baseSepolia: BASE_SEPOLIA_RPC_PORT }))
  await deployTo(hre, { folder, target, roles });
