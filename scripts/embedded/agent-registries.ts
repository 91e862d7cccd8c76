import type { Address } from "viem";
import { ERC8004 } from "../../contracts/erc8004.ts";
import { devClient, runtimeCode } from "./stand-in.ts";
import type { DevNode } from "./usdc.ts";

/** The address of the validation registry on local chains. Base does not have a listed one. */
export const LOCAL_VALIDATIONS: Address = "0x8004000000000000000000000000000000000003";

/** Installs our compiled stand-ins for ERC-8004's registries at their addresses on a local chain. */
export async function installAgentRegistries(node: DevNode): Promise<void> {
  const client = devClient(node);
  const { identity, reputation } = ERC8004;
  const [agents, feedback, validations] = await Promise.all([
    runtimeCode(node, "IdentityRegistry"),
    runtimeCode(node, "ReputationRegistry", [identity]),
    runtimeCode(node, "ValidationRegistry", [identity]),
  ]);
  await Promise.all([
    client.setCode({ address: identity, bytecode: agents }),
    client.setCode({ address: reputation, bytecode: feedback }),
    client.setCode({ address: LOCAL_VALIDATIONS, bytecode: validations }),
  ]);
}
