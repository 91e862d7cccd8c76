// Deploys the escrow: `npm run deploy -- --network base`. Different roles make a new deployment; the same roles find
// the existing instance.
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import hre from "hardhat";
import { type Address, concat, encodeAbiParameters, type Hex, keccak256, pad } from "viem";
import Escrow from "../ignition/modules/Escrow.ts";
import { type DeploySettings, readDeploySettings } from "./deploy-settings.ts";
import { buildContracts } from "./embedded/build-contracts.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

async function deploy({ network, facts, privateKey, roles }: DeploySettings): Promise<void> {
  await buildContracts(hre);
  const connection = await hre.network.create({ network, override: { accounts: [privateKey] } });
  try {
    const client = await connection.viem.getPublicClient();
    const chainId = await client.getChainId();
    if (chainId !== facts.chainId)
      throw new Error(`The node of ${network} is on chain ${chainId}; expected ${facts.chainId}.`);
    const types = [{ type: "address" }, { type: "address" }, { type: "address" }] as const;
    const constructorArguments = encodeAbiParameters(types, [roles.usdc, roles.arbiter, roles.feeRecipient]);
    const deploymentId = `escrow-${chainId}-${keccak256(constructorArguments).slice(2, 10)}`;
    const parameters = { Escrow: { ...roles } };
    const { escrow } = await connection.ignition.deploy(Escrow, { parameters, deploymentId });
    const { address } = escrow;
    if ((await client.getCode({ address })) !== (await expectedCode(roles)))
      throw new Error(`The code at ${address} is not this project's escrow with these roles.`);
    const build = (await hre.artifacts.getBuildInfoId("contracts/Escrow.sol:Escrow")) ?? "";
    console.log(`escrow        ${address} on chain ${chainId}; its code matches the compiler's output`);
    for (const [role, account] of Object.entries(roles)) console.log(`${role.padEnd(13)} ${account}`);
    console.log(`arguments     ${constructorArguments}`);
    console.log(`compiler      "input" in ${await hre.artifacts.getBuildInfoPath(build)}`);
  } finally {
    await connection.close();
  }
}

/** The runtime code with the roles filled in where the compiler left room for them, in order of declaration. */
async function expectedCode(roles: DeploySettings["roles"]): Promise<Hex> {
  const { deployedBytecode, immutableReferences = {} } = await hre.artifacts.readArtifact("Escrow");
  const inOrder = Object.keys(immutableReferences).toSorted((a, b) => Number(a) - Number(b));
  const values: readonly Address[] = [roles.usdc, roles.arbiter, roles.feeRecipient];
  return inOrder.reduce<Hex>((code, id, index) => {
    const places = immutableReferences[id] ?? [];
    return places.reduce((text, place) => fill(text, place.start, values[index] ?? "0x"), code);
  }, deployedBytecode as Hex);
}

function fill(code: Hex, start: number, value: Hex): Hex {
  const from = 2 + start * 2;
  return concat([code.slice(0, from) as Hex, pad(value).toLowerCase() as Hex, `0x${code.slice(from + 64)}`]);
}

const { values } = parseArgs({ options: { network: { type: "string" } } });
try {
  await deploy(readDeploySettings(values.network, process.env, ROOT));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
