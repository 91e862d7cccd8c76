import { BaseError, ContractFunctionZeroDataError, type PublicClient, zeroAddress } from "viem";
import { MAIN_NETWORK, NETWORKS } from "../api/platform/networks.ts";
import type { Address } from "../api/platform/wallet.ts";
import { escrowAbi, operatorAbi } from "../contracts/abi.ts";
import { commercePaymentsAbi } from "../contracts/commerce-payments.ts";
import type { Queryable } from "./schemas.ts";
import type { IndexerSettings, Operator } from "./settings.ts";

const { chainId: CHAIN_ID } = NETWORKS[MAIN_NETWORK];

/** Nothing answers at the address of an escrow. The node is late, or the address is wrong: another start may find it. */
export class AbsentEscrowError extends Error {
  override readonly name = "AbsentEscrowError";

  constructor(address: Address) {
    super(
      `ESCROW_ADDRESSES names ${address}, where the node has no contract. It may be late; if not, correct the address`,
    );
  }
}

const lower = (address: Address) => address.toLowerCase() as Address;

/**
 * The settings with the operators among the escrows, which only the chain tells apart: it is asked once, and what it said
 * is remembered, because a late node answers as if the contract had never been. What an operator's payments are kept in
 * counts as the service's own, like an escrow: who is paid from there is paid by the buyer.
 * @throws AbsentEscrowError if a contract is not there that was never seen, viem's error if the node does not answer
 */
export async function withOperators(
  settings: IndexerSettings,
  chain: PublicClient,
  db: Queryable,
): Promise<IndexerSettings> {
  const operators = await rememberedOperators(db, chain, settings.escrows);
  const own = new Set([...settings.ownAddresses, ...operators.map(({ store }) => store)]);
  return { ...settings, operators, ownAddresses: [...own].sort() };
}

/**
 * The operators among these contracts.
 * @throws AbsentEscrowError if a contract is not there, viem's error if the node does not answer
 */
export async function readOperators(chain: PublicClient, escrows: readonly Address[]): Promise<readonly Operator[]> {
  const found = await Promise.all(escrows.map((address) => readOperator(chain, address)));
  return found.filter((operator) => operator !== null);
}

/** A plain escrow has null instead of an operator's contracts. */
const KINDS = `create schema if not exists indexer;
  create table if not exists indexer.escrow_kind
    (chain_id int8, address text, custody text, collector text, store text, primary key (chain_id, address))`;

async function rememberedOperators(
  db: Queryable,
  chain: PublicClient,
  escrows: readonly Address[],
): Promise<readonly Operator[]> {
  if (escrows.length === 0) return [];
  await db.query(KINDS);
  const { rows } = await db.query<{ [Key in keyof Operator]: Operator[Key] | null } & Pick<Operator, "address">>(
    "select address, custody, collector, store from indexer.escrow_kind where chain_id = $1",
    [CHAIN_ID],
  );
  const known = new Map(rows.map((row) => [row.address, row.custody === null ? null : (row as Operator)]));
  const unknown = escrows.filter((address) => !known.has(address));
  for (const address of unknown) {
    const operator = await readOperator(chain, address);
    const { custody = null, collector = null, store = null } = operator ?? {};
    await db.query("insert into indexer.escrow_kind values ($1, $2, $3, $4, $5) on conflict do nothing", [
      ...[CHAIN_ID, address],
      ...[custody, collector, store],
    ]);
    known.set(address, operator);
  }
  return escrows.map((address) => known.get(address) ?? null).filter((operator) => operator !== null);
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
 * another index. So an escrow has to answer as one.
 */
async function requireEscrow(chain: PublicClient, address: Address): Promise<void> {
  const owed = { address, abi: escrowAbi, functionName: "owed", args: [zeroAddress] } as const;
  await chain.readContract(owed).catch((error: unknown) => {
    const isNothing = (cause: unknown) => cause instanceof ContractFunctionZeroDataError;
    if (error instanceof BaseError && error.walk(isNothing) !== null) throw new AbsentEscrowError(address);
    throw error;
  });
}
