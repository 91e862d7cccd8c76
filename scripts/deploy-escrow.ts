import { join } from "node:path";
import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";
import { type Address, encodeAbiParameters, type Hex, keccak256 } from "viem";
import Escrow from "../ignition/modules/Escrow.ts";
import { asDeployer } from "./deploy-connection.ts";
import type { DeploySettings } from "./deploy-settings.ts";
import { compilerFileIn, isCompilersOutput } from "./deployed-code.ts";

/** A contract on a chain, and what an explorer asks for to verify its code. */
export interface VerifiableDeployment {
  readonly address: Address;
  readonly chainId: number;
  readonly constructorArguments: Hex;
  /** A file whose `input` is the standard JSON input that the code was compiled from. */
  readonly compilerFile: string;
}

/**
 * Deploys the escrow, or finds the existing instance with the same roles.
 * @throws Error if the node is on another chain, or the code on the chain is not the escrow's.
 */
export const deployEscrow = (hre: HardhatRuntimeEnvironment, settings: DeploySettings): Promise<VerifiableDeployment> =>
  asDeployer(hre, settings, async (connection) => {
    const { roles, facts } = settings;
    const client = await connection.viem.getPublicClient();
    const types = [{ type: "address" }, { type: "address" }, { type: "address" }] as const;
    const constructorArguments = encodeAbiParameters(types, [roles.usdc, roles.arbiter, roles.feeRecipient]);
    const deploymentId = `escrow-${facts.chainId}-${keccak256(constructorArguments).slice(2, 10)}`;
    const parameters = { Escrow: { ...roles } };
    const { escrow } = await connection.ignition.deploy(Escrow, { parameters, deploymentId });
    const { address } = escrow;
    const immutables = [roles.usdc, roles.arbiter, roles.feeRecipient];
    if (!(await isCompilersOutput(hre, client, { address, contract: "Escrow", immutables })))
      throw new Error(`The code at ${address} is not this project's escrow with these roles.`);
    const compilerFile = compilerFileIn(join(hre.config.paths.ignition, "deployments", deploymentId), "Escrow#Escrow");
    return { address, chainId: facts.chainId, constructorArguments, compilerFile };
  });
