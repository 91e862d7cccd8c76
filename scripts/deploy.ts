// Deploys the escrow and the settlement batch: `npm run deploy -- --network base`. Different roles make a new escrow; the
// same roles find the existing instance. There is one settlement batch on a chain.
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import hre from "hardhat";
import { deployEscrow } from "./deploy-escrow.ts";
import { readDeploySettings } from "./deploy-settings.ts";
import { deploySettlementBatch } from "./deploy-settlement-batch.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

const { values } = parseArgs({ options: { network: { type: "string" } } });
try {
  const settings = readDeploySettings(values.network, process.env, ROOT);
  const { address, chainId, constructorArguments, compilerFile } = await deployEscrow(hre, settings);
  console.log(`escrow        ${address} on chain ${chainId}; its code matches the compiler's output`);
  for (const [role, account] of Object.entries(settings.roles)) console.log(`${role.padEnd(13)} ${account}`);
  console.log(`arguments     ${constructorArguments}`);
  console.log(`compiler      "input" in ${compilerFile}`);
  const batch = await deploySettlementBatch(hre, settings);
  console.log(`batch         ${batch} on chain ${chainId}; its code matches the compiler's output`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
