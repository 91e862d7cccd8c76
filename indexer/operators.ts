import { BaseError, ContractFunctionZeroDataError, type PublicClient, zeroAddress } from "viem";
import type { Address } from "../api/kernel/wallet.ts";
import { escrowAbi, operatorAbi } from "../contracts/abi.ts";
import { commercePaymentsAbi } from "../contracts/commerce-payments.ts";
import type { IndexerSettings, Operator } from "./settings.ts";

const lower = (address: Address) => address.toLowerCase() as Address;

/**
 * The settings with the operators among the escrows, which only the chain tells apart. What an operator's payments are
 * kept in counts as the service's own, like an escrow: who is paid from there is paid by the buyer.
 * @throws viem's error if the node does not answer
 */
export async function withOperators(settings: IndexerSettings, chain: PublicClient): Promise<IndexerSettings> {
  const operators = await readOperators(chain, settings.escrows);
  const own = new Set([...settings.ownAddresses, ...operators.map(({ store }) => store)]);
  return { ...settings, operators, ownAddresses: [...own].sort() };
}

/** The operators among these contracts. @throws viem's error if the node does not answer */
export async function readOperators(chain: PublicClient, escrows: readonly Address[]): Promise<readonly Operator[]> {
  const found = await Promise.all(escrows.map((address) => readOperator(chain, address)));
  return found.filter((operator) => operator !== null);
}

async function readOperator(chain: PublicClient, address: Address): Promise<Operator | null> {
  const call = { address, abi: operatorAbi } as const;
  const custody = await chain.readContract({ ...call, functionName: "ESCROW" }).catch(() => null);
  if (custody === null) {
    await requireEscrow(chain, address);
    return null;
  }
  const [collector, store] = await Promise.all([
    chain.readContract({ ...call, functionName: "COLLECTOR" }),
    chain.readContract({ address: custody, abi: commercePaymentsAbi, functionName: "getTokenStore", args: [address] }),
  ]);
  return { address, custody: lower(custody), collector: lower(collector), store: lower(store) };
}

/**
 * Nodes report a missing function in as many ways as failures of their own, and an operator taken for an escrow would be
 * another index. So an escrow has to answer as one, unless nothing is there yet.
 */
async function requireEscrow(chain: PublicClient, address: Address): Promise<void> {
  const owed = { address, abi: escrowAbi, functionName: "owed", args: [zeroAddress] } as const;
  await chain.readContract(owed).catch((error: unknown) => {
    const isNothing = (cause: unknown) => cause instanceof ContractFunctionZeroDataError;
    if (!(error instanceof BaseError) || error.walk(isNothing) === null) throw error;
  });
}
