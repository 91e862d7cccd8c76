import { createWalletClient, formatEther, type Hex, http, type PublicClient } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { CREATEX } from "../contracts/settlement-batch.ts";
import type { Planned } from "./deploy-plan.ts";
import type { DeploySettings } from "./deploy-settings.ts";
import { waitUntil } from "./embedded/wait-until.ts";

const MINED_WITHIN_MS = 120_000;
/** A reserve, because gas prices rise and the estimate lacks the fee for data on Ethereum. */
const RESERVE = { numerator: 3n, denominator: 2n };

/** The current cost of sending, in gas and wei, without the fee for data on Ethereum. */
export interface DeploymentCost {
  readonly gas: bigint;
  readonly wei: bigint;
}

export async function estimateCost(client: PublicClient, planned: readonly Planned[]): Promise<DeploymentCost> {
  const calls = planned.map(({ data }) => client.estimateGas({ to: CREATEX, data }));
  const [gasPrice, ...each] = await Promise.all([client.getGasPrice(), ...calls]);
  const gas = each.reduce((sum, one) => sum + one, 0n);
  return { gas, wei: gas * gasPrice };
}

/**
 * Deploys the contracts, one transaction each.
 * @throws Error if the deployer lacks ETH, still has unmined transactions, or a transaction reverts or is not mined
 */
export async function sendDeployment(
  client: PublicClient,
  { facts, rpcUrl, privateKey }: DeploySettings & { readonly privateKey: Hex },
  planned: readonly Planned[],
): Promise<void> {
  const account = privateKeyToAccount(privateKey);
  const { address } = account;
  const [cost, balance, sent, mined] = await Promise.all([
    estimateCost(client, planned),
    client.getBalance({ address }),
    client.getTransactionCount({ address, blockTag: "pending" }),
    client.getTransactionCount({ address }),
  ]);
  const needed = (cost.wei * RESERVE.numerator) / RESERVE.denominator;
  if (balance < needed)
    throw new Error(
      `The deployer ${address} holds ${formatEther(balance)} ETH on ${facts.name}, but needs about ${formatEther(needed)}. Send it ETH, and run this again.`,
    );
  if (sent > mined)
    throw new Error(`The deployer ${address} has an unmined transaction. Run this again once it is mined.`);
  const wallet = createWalletClient({ account, transport: http(rpcUrl) });
  for (const { name, data, address: target } of planned) {
    const hash = await wallet.sendTransaction({ chain: null, to: CREATEX, data });
    if (!(await waitUntil(async () => (await client.getCode({ address: target })) !== undefined, MINED_WITHIN_MS, 250)))
      throw new Error(`The ${name} is not at ${target} after two minutes. Its transaction is ${hash}.`);
  }
}

/**
 * Returns the block in which an address got its code, by bisection, which takes 25 calls on Base. Returns null if the node
 * does not have the state of old blocks.
 */
export async function deploymentBlock(
  client: Pick<PublicClient, "getCode" | "getBlockNumber">,
  address: Hex,
): Promise<bigint | null> {
  const isThereAt = async (blockNumber: bigint) => (await client.getCode({ address, blockNumber })) !== undefined;
  try {
    let [low, high] = [0n, await client.getBlockNumber()];
    while (low < high) {
      const middle = (low + high) / 2n;
      if (await isThereAt(middle)) high = middle;
      else low = middle + 1n;
    }
    return low;
  } catch {
    return null;
  }
}
