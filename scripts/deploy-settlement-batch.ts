import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";
import { type Address, keccak256 } from "viem";
import { SETTLEMENT_BATCH } from "../contracts/settlement-batch.ts";
import SettlementBatch from "../ignition/modules/SettlementBatch.ts";
import { asDeployer } from "./deploy-connection.ts";
import type { DeploySettings } from "./deploy-settings.ts";

const { address, codeHash, salt } = SETTLEMENT_BATCH;

/**
 * Deploys the settlement batch through CreateX, or finds it: its address is the same whoever deploys it, and nothing is
 * sent if it has code. Returns that address.
 * @throws Error if the chain has no CreateX, or the code at the address is not the batch's.
 */
export const deploySettlementBatch = (hre: HardhatRuntimeEnvironment, settings: DeploySettings): Promise<Address> =>
  asDeployer(hre, settings, async (connection) => {
    const client = await connection.viem.getPublicClient();
    if ((await client.getCode({ address })) === undefined)
      await connection.ignition.deploy(SettlementBatch, {
        deploymentId: `settlement-batch-${settings.facts.chainId}`,
        strategy: "create2",
        strategyConfig: { salt },
      });
    const code = await client.getCode({ address });
    if (code === undefined) throw new Error(`The settlement batch was not deployed to ${address}.`);
    if (keccak256(code) !== codeHash) throw new Error(`The code at ${address} is not the settlement batch's.`);
    return address;
  });
