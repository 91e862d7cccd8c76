import { join } from "node:path";
import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";
import { encodeAbiParameters, keccak256, toHex } from "viem";
import { requireCommercePayments } from "../api/adapters/chain/commerce-payments.ts";
import { COMMERCE_PAYMENTS } from "../contracts/commerce-payments.ts";
import ArbiterOperator from "../ignition/modules/ArbiterOperator.ts";
import { asDeployer } from "./deploy-connection.ts";
import type { VerifiableDeployment } from "./deploy-escrow.ts";
import type { DeploySettings } from "./deploy-settings.ts";
import { compilerFileIn, isCompilersOutput } from "./deployed-code.ts";

const ARGUMENTS = ["address", "address", "address", "address", "address", "bool"].map((type) => ({ type }));

/**
 * Deploys the operator over base/commerce-payments, or finds the existing instance with the same roles.
 * @throws Error if the node is on another chain, base/commerce-payments is not there or is another, or the code on the
 * chain is not the operator's.
 */
export const deployOperator = (
  hre: HardhatRuntimeEnvironment,
  settings: DeploySettings,
): Promise<VerifiableDeployment> =>
  asDeployer(hre, settings, async (connection) => {
    const { roles, facts } = settings;
    const { escrow, collector, feeIsAmount } = COMMERCE_PAYMENTS;
    const client = await connection.viem.getPublicClient();
    await requireCommercePayments(client);
    const addresses = [escrow, collector, roles.usdc, roles.arbiter, roles.feeRecipient];
    const constructorArguments = encodeAbiParameters(ARGUMENTS, [...addresses, feeIsAmount]);
    const deploymentId = `operator-${facts.chainId}-${keccak256(constructorArguments).slice(2, 10)}`;
    const parameters = { ArbiterOperator: { ...COMMERCE_PAYMENTS, ...roles } };
    const { operator } = await connection.ignition.deploy(ArbiterOperator, { parameters, deploymentId });
    const { address } = operator;
    const immutables = [...addresses, toHex(feeIsAmount)];
    if (!(await isCompilersOutput(hre, client, { address, contract: "ArbiterOperator", immutables })))
      throw new Error(`The code at ${address} is not this project's operator with these roles.`);
    const journal = join(hre.config.paths.ignition, "deployments", deploymentId);
    const compilerFile = compilerFileIn(journal, "ArbiterOperator#ArbiterOperator");
    return { address, chainId: facts.chainId, constructorArguments, compilerFile };
  });
