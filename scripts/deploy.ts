// Deploys the escrow, the operator, the evaluator, the settlement batch and the log anchor: `npm run deploy -- --network
// base`. Different roles make new instances; the same roles find the existing ones. A chain has one settlement batch and one
// log anchor.
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import hre from "hardhat";
import type { VerifiableDeployment } from "./deploy-connection.ts";
import { deployEscrow } from "./deploy-escrow.ts";
import { deployEvaluator } from "./deploy-evaluator.ts";
import { deployOperator } from "./deploy-operator.ts";
import { readDeploySettings } from "./deploy-settings.ts";
import { deployLogAnchor, deploySettlementBatch } from "./deploy-shared.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

const { values } = parseArgs({ options: { network: { type: "string" } } });
const tell = (name: string, { address, chainId, constructorArguments, compilerFile }: VerifiableDeployment) => {
  console.log(`${name.padEnd(13)} ${address} on chain ${chainId}; its code matches the compiler's output`);
  console.log(`arguments     ${constructorArguments}`);
  console.log(`compiler      "input" in ${compilerFile}`);
};
try {
  const settings = readDeploySettings(values.network, process.env, ROOT);
  for (const [role, account] of Object.entries(settings.roles)) console.log(`${role.padEnd(13)} ${account}`);
  tell("escrow", await deployEscrow(hre, settings));
  tell("operator", await deployOperator(hre, settings));
  tell("evaluator", await deployEvaluator(hre, settings));
  const shared = { batch: await deploySettlementBatch(hre, settings), anchor: await deployLogAnchor(hre, settings) };
  for (const [name, address] of Object.entries(shared))
    console.log(
      `${name.padEnd(13)} ${address} on chain ${settings.facts.chainId}; its code matches the compiler's output`,
    );
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
