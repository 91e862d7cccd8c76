import hre from "hardhat";
import type { Abi, Address, Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { COMMERCE_PAYMENTS } from "../../../contracts/commerce-payments.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import type { TestChain } from "../chain/chain.ts";
import { ARBITER_KEY } from "../service/accounts.ts";
import { FEE_RECIPIENT, type TestEscrow } from "./contract.ts";

/** Deploys the operator over base/commerce-payments on a test chain, with the arbiter and fees of `deployEscrow`. */
export async function deployOperator(
  chain: TestChain,
  over = COMMERCE_PAYMENTS,
  feeRecipient = FEE_RECIPIENT,
): Promise<TestEscrow> {
  const { abi, bytecode } = await hre.artifacts.readArtifact("ArbiterOperator");
  const arbiter = privateKeyToAccount(ARBITER_KEY).address;
  await chain.setBalance(arbiter, 10n ** 20n);
  const { escrow, collector, feeIsAmount } = over;
  const hash = await chain.client.deployContract({
    account: devAccount(0),
    abi: abi as Abi,
    bytecode: bytecode as Hex,
    args: [escrow, collector, chain.network.usdc.address, arbiter, feeRecipient, feeIsAmount],
  });
  const { contractAddress, blockNumber } = await chain.client.waitForTransactionReceipt({ hash });
  if (!contractAddress) throw new Error("the operator was not deployed");
  return { address: contractAddress.toLowerCase() as Address, arbiter, block: Number(blockNumber) };
}
