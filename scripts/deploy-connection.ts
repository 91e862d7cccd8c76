import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";
import type { DeploySettings } from "./deploy-settings.ts";
import { buildContracts } from "./embedded/build-contracts.ts";

export type Connection = Awaited<ReturnType<HardhatRuntimeEnvironment["network"]["create"]>>;

/**
 * Compiles, connects to the network as the deployer, runs, and disconnects.
 * @throws Error if the node is on another chain.
 */
export async function asDeployer<T>(
  hre: HardhatRuntimeEnvironment,
  { network, facts, privateKey }: DeploySettings,
  run: (connection: Connection) => Promise<T>,
): Promise<T> {
  await buildContracts(hre);
  const connection = await hre.network.create({ network, override: { accounts: [privateKey] } });
  try {
    const chainId = await (await connection.viem.getPublicClient()).getChainId();
    if (chainId !== facts.chainId)
      throw new Error(`The node of ${network} is on chain ${chainId}; expected ${facts.chainId}.`);
    return await run(connection);
  } finally {
    await connection.close();
  }
}
