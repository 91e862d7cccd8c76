import type { Address } from "viem";
import { ERC8004 } from "../../contracts/erc8004.ts";
import { devClient, runtimeCode } from "./stand-in.ts";
import type { DevNode } from "./usdc.ts";

/** Where the registry of validations is on local chains: Base has none that is listed. */
export const LOCAL_VALIDATIONS: Address = "0x8004000000000000000000000000000000000003";

/** Puts our stand-ins for ERC-8004's registries, which have been compiled, at their addresses on a local chain. */
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
