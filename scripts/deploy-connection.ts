import { join } from "node:path";
import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";
import { type Address, encodeAbiParameters, type Hex, keccak256, type PublicClient, toHex } from "viem";
import type { DeploySettings } from "./deploy-settings.ts";
import { compilerFileIn, isCompilersOutput } from "./deployed-code.ts";
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

/** A contract on a chain, and what an explorer asks for to verify its code. */
export interface VerifiableDeployment {
  readonly address: Address;
  readonly chainId: number;
  readonly constructorArguments: Hex;
  /** A file whose `input` is the standard JSON input that the code was compiled from. */
  readonly compilerFile: string;
}

/** A contract that is deployed once for each set of roles. */
interface ContractWithRoles {
  readonly title: string;
  /** Its name in the sources, which is its Ignition module's too. */
  readonly contract: string;
  /** Its constructor's arguments. */
  readonly argumentsOf: (roles: DeploySettings["roles"]) => readonly (Address | boolean)[];
  /** What is immutable in its code beside the arguments, by its address. */
  readonly immutablesOf?: (address: Address) => readonly Hex[];
  /** @throws Error if the chain lacks what the contract needs */
  readonly demand?: (client: PublicClient) => Promise<unknown>;
  readonly create: (
    ignition: Connection["ignition"],
    deploymentId: string,
    roles: DeploySettings["roles"],
  ) => Promise<{ readonly address: Address }>;
}

/**
 * Deploys a contract, or finds the existing instance with the same roles.
 * @throws Error if the node is on another chain, or the code on the chain is not the contract's.
 */
export const deployWithRoles =
  ({ title, contract, argumentsOf, immutablesOf = () => [], demand, create }: ContractWithRoles) =>
  (hre: HardhatRuntimeEnvironment, settings: DeploySettings): Promise<VerifiableDeployment> =>
    asDeployer(hre, settings, async ({ viem, ignition }) => {
      const { roles, facts } = settings;
      const client = await viem.getPublicClient();
      await demand?.(client);
      const values = argumentsOf(roles);
      const types = values.map((value) => ({ type: typeof value === "boolean" ? "bool" : "address" }));
      const constructorArguments = encodeAbiParameters(types, values);
      const deploymentId = `${title}-${facts.chainId}-${keccak256(constructorArguments).slice(2, 10)}`;
      const { address } = await create(ignition, deploymentId, roles);
      const immutables = [
        ...values.map((value) => (typeof value === "boolean" ? toHex(value) : value)),
        ...immutablesOf(address),
      ];
      if (!(await isCompilersOutput(hre, client, { address, contract, immutables })))
        throw new Error(`The code at ${address} is not this project's ${title} with these roles.`);
      const journal = join(hre.config.paths.ignition, "deployments", deploymentId);
      const compilerFile = compilerFileIn(journal, `${contract}#${contract}`);
      return { address, chainId: facts.chainId, constructorArguments, compilerFile };
    });
