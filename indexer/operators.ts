import { BaseError, ContractFunctionRevertedError, ContractFunctionZeroDataError, type PublicClient } from "viem";
import type { Address } from "../api/kernel/wallet.ts";
import { operatorAbi } from "../contracts/abi.ts";
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
  const custody = await chain.readContract({ ...call, functionName: "ESCROW" }).catch(unlessRefused);
  if (custody === null) return null;
  const [collector, store] = await Promise.all([
    chain.readContract({ ...call, functionName: "COLLECTOR" }),
    chain.readContract({ address: custody, abi: commercePaymentsAbi, functionName: "getTokenStore", args: [address] }),
  ]);
  return { address, custody: lower(custody), collector: lower(collector), store: lower(store) };
}

/** Only operators have it: any other contract refuses, or there is none yet. */
function unlessRefused(error: unknown): null {
  const isAnswer = (cause: unknown) =>
    cause instanceof ContractFunctionRevertedError || cause instanceof ContractFunctionZeroDataError;
  if (error instanceof BaseError && error.walk(isAnswer) !== null) return null;
  throw error;
}
