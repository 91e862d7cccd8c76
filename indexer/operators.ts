import { type PublicClient, zeroAddress } from "viem";
import { lower } from "../api/platform/config/values.ts";
import type { Address } from "../api/platform/wallet.ts";
import { escrowAbi, operatorAbi } from "../contracts/abi.ts";
import { commercePaymentsAbi } from "../contracts/commerce-payments.ts";
import type { IndexerSettings, Operator } from "./settings.ts";

/**
 * The settings with the operators among the escrows. The account in which an operator's payments are kept counts as the
 * service's own, like an escrow: who is paid from there is paid by the buyer.
 * @throws as `readOperators`
 */
export async function withOperators(settings: IndexerSettings, chain: PublicClient): Promise<IndexerSettings> {
  const operators = await readOperators(chain, settings.escrows);
  const own = new Set([...settings.ownAddresses, ...operators.map(({ store }) => store)]);
  return { ...settings, operators, ownAddresses: [...own].sort() };
}

/**
 * The operators among these contracts.
 * @throws viem's error if the node does not answer, or has no such contract: a late one looks like a wrong address
 */
export async function readOperators(chain: PublicClient, escrows: readonly Address[]): Promise<readonly Operator[]> {
  const found = await Promise.all(escrows.map((address) => readOperator(chain, address)));
  return found.filter((operator) => operator !== null);
}

async function readOperator(chain: PublicClient, address: Address): Promise<Operator | null> {
  const call = { address, abi: operatorAbi } as const;
  const custody = await chain.readContract({ ...call, functionName: "ESCROW" }).catch(() => null);
  if (custody === null) {
    // Nodes report a missing function in as many ways as failures of their own, so an escrow has to answer as one.
    await chain.readContract({ address, abi: escrowAbi, functionName: "owed", args: [zeroAddress] });
    return null;
  }
  const [collector, store] = await Promise.all([
    chain.readContract({ ...call, functionName: "COLLECTOR" }),
    chain.readContract({ address: custody, abi: commercePaymentsAbi, functionName: "getTokenStore", args: [address] }),
  ]);
  return { address, custody: lower(custody), collector: lower(collector), store: lower(store) };
}
