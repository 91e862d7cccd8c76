import { join } from "node:path";
import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";
import { encodeAbiParameters, getContractAddress, keccak256 } from "viem";
import ArbiterEvaluator from "../ignition/modules/ArbiterEvaluator.ts";
import { asDeployer } from "./deploy-connection.ts";
import type { VerifiableDeployment } from "./deploy-escrow.ts";
import type { DeploySettings } from "./deploy-settings.ts";
import { compilerFileIn, isCompilersOutput } from "./deployed-code.ts";

/** What evaluators are clones of is the first contract that their maker makes. */
const HAND_NONCE = 1n;

/**
 * Deploys the evaluator of ERC-8183 jobs, or finds the existing instance with the same roles.
 * @throws Error if the node is on another chain, or the code on the chain is not the evaluator's.
 */
export const deployEvaluator = (
  hre: HardhatRuntimeEnvironment,
  settings: DeploySettings,
): Promise<VerifiableDeployment> =>
  asDeployer(hre, settings, async (connection) => {
    const { roles, facts } = settings;
    const { arbiter, feeRecipient } = roles;
    const client = await connection.viem.getPublicClient();
    const constructorArguments = encodeAbiParameters(
      [{ type: "address" }, { type: "address" }],
      [arbiter, feeRecipient],
    );
    const deploymentId = `evaluator-${facts.chainId}-${keccak256(constructorArguments).slice(2, 10)}`;
    const parameters = { ArbiterEvaluator: { arbiter, feeRecipient } };
    const { evaluator } = await connection.ignition.deploy(ArbiterEvaluator, { parameters, deploymentId });
    const { address } = evaluator;
    const immutables = [arbiter, feeRecipient, getContractAddress({ from: address, nonce: HAND_NONCE })];
    if (!(await isCompilersOutput(hre, client, { address, contract: "ArbiterEvaluator", immutables })))
      throw new Error(`The code at ${address} is not this project's evaluator with these roles.`);
    const journal = join(hre.config.paths.ignition, "deployments", deploymentId);
    const compilerFile = compilerFileIn(journal, "ArbiterEvaluator#ArbiterEvaluator");
    return { address, chainId: facts.chainId, constructorArguments, compilerFile };
  });
