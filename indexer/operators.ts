import { type PublicClient, zeroAddress } from "viem";
import { lower } from "../api/platform/config/values.ts";
import type { Address } from "../api/platform/wallet.ts";
import { escrowAbi, operatorAbi } from "../contracts/abi.ts";
import { commercePaymentsAbi } from "../contracts/commerce-payments.ts";
import type { IndexerSettings, Operator } from "./settings.ts";

/**
 * Adds the operators among the escrows to the settings. The account that holds an operator's payments is a service address,
 * like an escrow, because a payout from it is a payment by the buyer.
 * @throws like `readOperators`
 */
export async function withOperators(settings: IndexerSettings, chain: PublicClient): Promise<IndexerSettings> {
  const operators = await readOperators(chain, settings.escrows);
  const own = new Set([...settings.ownAddresses, ...operators.map(({ store }) => store)]);
  return { ...settings, operators, ownAddresses: [...own].sort() };
}

/**
 * Returns the operators among these contracts.
 * @throws viem's error if the node does not respond or does not have the contract, because it lags or the address is wrong
 */
export async function readOperators(chain: PublicClient, escrows: readonly Address[]): Promise<readonly Operator[]> {
  const found = await Promise.all(escrows.map((address) => readOperator(chain, address)));
  return found.filter((operator) => operator !== null);
}

async function readOperator(chain: PublicClient, address: Address): Promise<Operator | null> {
  const call = { address, abi: operatorAbi } as const;
  const custody = await chain.readContract({ ...call, functionName: "ESCROW" }).catch(() => null);
  if (custody === null) {
    // Nodes do not report a missing function reliably, so check that the contract responds like an escrow.
    await chain.readContract({ address, abi: escrowAbi, functionName: "owed", args: [zeroAddress] });
    return null;
  }
  const [collector, store] = await Promise.all([
    chain.readContract({ ...call, functionName: "COLLECTOR" }),
    chain.readContract({ address: custody, abi: commercePaymentsAbi, functionName: "getTokenStore", args: [address] }),
  ]);
  return { address, custody: lower(custody), collector: lower(collector), store: lower(store) };
}
