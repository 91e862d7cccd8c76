import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";
import { type Address, concat, encodeAbiParameters, type Hex, hexToNumber, keccak256, pad, size, slice } from "viem";
import Escrow from "../ignition/modules/Escrow.ts";
import { asDeployer } from "./deploy-connection.ts";
import type { DeploySettings } from "./deploy-settings.ts";

/** An escrow on a chain, and what an explorer asks for to verify its code. */
export interface EscrowDeployment {
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
export const deployEscrow = (hre: HardhatRuntimeEnvironment, settings: DeploySettings): Promise<EscrowDeployment> =>
  asDeployer(hre, settings, async (connection) => {
    const { roles, facts } = settings;
    const client = await connection.viem.getPublicClient();
    const types = [{ type: "address" }, { type: "address" }, { type: "address" }] as const;
    const constructorArguments = encodeAbiParameters(types, [roles.usdc, roles.arbiter, roles.feeRecipient]);
    const deploymentId = `escrow-${facts.chainId}-${keccak256(constructorArguments).slice(2, 10)}`;
    const parameters = { Escrow: { ...roles } };
    const { escrow } = await connection.ignition.deploy(Escrow, { parameters, deploymentId });
    const { address } = escrow;
    const code = await client.getCode({ address });
    if (code === undefined || withoutMetadata(code) !== withoutMetadata(await expectedCode(hre, roles)))
      throw new Error(`The code at ${address} is not this project's escrow with these roles.`);
    const compilerFile = compilerFileIn(join(hre.config.paths.ignition, "deployments", deploymentId));
    return { address, chainId: facts.chainId, constructorArguments, compilerFile };
  });

/** The runtime code with the roles filled in where the compiler left room for them, in order of declaration. */
async function expectedCode(hre: HardhatRuntimeEnvironment, roles: DeploySettings["roles"]): Promise<Hex> {
  const { deployedBytecode, immutableReferences = {} } = await hre.artifacts.readArtifact("Escrow");
  const inOrder = Object.keys(immutableReferences).toSorted((a, b) => Number(a) - Number(b));
  const values: readonly Address[] = [roles.usdc, roles.arbiter, roles.feeRecipient];
  return inOrder.reduce<Hex>((code, id, index) => {
    const places = immutableReferences[id] ?? [];
    return places.reduce((text, place) => fill(text, place.start, values[index] ?? "0x"), code);
  }, deployedBytecode as Hex);
}

/** Without the metadata that solc appends: a hash of the sources, comments included. Its last two bytes say its length. */
const withoutMetadata = (code: Hex): Hex => slice(code, 0, size(code) - hexToNumber(slice(code, -2)) - 2);

/** Ignition keeps what it deployed; the build's own file goes when a source changes. */
function compilerFileIn(journal: string): string {
  const { buildInfoId } = JSON.parse(readFileSync(join(journal, "artifacts", "Escrow#Escrow.json"), "utf8"));
  return join(journal, "build-info", `${buildInfoId}.json`);
}

function fill(code: Hex, start: number, value: Hex): Hex {
  const from = 2 + start * 2;
  return concat([code.slice(0, from) as Hex, pad(value).toLowerCase() as Hex, `0x${code.slice(from + 64)}`]);
}
