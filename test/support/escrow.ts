import hre from "hardhat";
import type { Abi, Address, Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import type { TestChain } from "./chain.ts";

/** The arbiter of escrows under test. */
export const ARBITER_KEY: Hex = `0x${"a7".repeat(32)}`;
export const FEE_RECIPIENT: Address = "0x00000000000000000000000000000000c0ffee01";

export interface TestEscrow {
  readonly address: Address;
  readonly arbiter: Address;
  /** The block that it was deployed in. */
  readonly block: number;
}

/** Deploys the escrow contract on a test chain, with an arbiter who has gas. */
export async function deployEscrow(chain: TestChain): Promise<TestEscrow> {
  await hre.tasks.getTask("build").run({ quiet: true });
  const { abi, bytecode } = await hre.artifacts.readArtifact("Escrow");
  const arbiter = privateKeyToAccount(ARBITER_KEY).address;
  await chain.setBalance(arbiter, 10n ** 20n);
  const hash = await chain.client.deployContract({
    account: devAccount(0),
    abi: abi as Abi,
    bytecode: bytecode as Hex,
    args: [chain.network.usdc.address, arbiter, FEE_RECIPIENT],
  });
  const { contractAddress, blockNumber } = await chain.client.waitForTransactionReceipt({ hash });
  if (!contractAddress) throw new Error("the escrow was not deployed");
  return { address: contractAddress.toLowerCase() as Address, arbiter, block: Number(blockNumber) };
}
