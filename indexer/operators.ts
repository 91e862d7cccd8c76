import { BaseError, ContractFunctionZeroDataError, type PublicClient, zeroAddress } from "viem";
import { lower } from "../api/platform/config/values.ts";
import type { Address } from "../api/platform/wallet.ts";
import { escrowAbi, operatorAbi } from "../contracts/abi.ts";
import { commercePaymentsAbi } from "../contracts/commerce-payments.ts";
import { CHAIN_ID } from "./ledger.ts";
import type { Queryable } from "./schemas.ts";
import type { IndexerSettings, Operator } from "./settings.ts";

/** Nothing answers at the address of an escrow. The node is late, or the address is wrong: another start may find it. */
export class AbsentEscrowError extends Error {
  override readonly name = "AbsentEscrowError";

  constructor(address: Address) {
    super(
      `ESCROW_ADDRESSES names ${address}, where the node has no contract. It may be late; if not, correct the address`,
    );
  }
}

/** `operator` is null for a plain escrow. */
const KINDS = `create schema if not exists indexer; create table if not exists indexer.escrow_kind (chain_id int8, address text, operator jsonb, primary key (chain_id, address))`;

/**
 * The settings with the operators among the escrows. The chain is asked once, and its answer is remembered, because a late
 * node answers as if the contract had never been. The account in which an operator's payments are kept counts as the
 * service's own, like an escrow: who is paid from there is paid by the buyer.
 * @throws AbsentEscrowError if a contract is not there that was never seen, viem's error if the node does not answer
 */
export async function withOperators(
  settings: IndexerSettings,
  chain: PublicClient,
  db: Queryable,
): Promise<IndexerSettings> {
  const { escrows, ownAddresses } = settings;
  if (escrows.length === 0) return settings;
  await db.query(KINDS);
  const { rows } = await db.query<{ address: Address; operator: Operator | null }>(
    "select address, operator from indexer.escrow_kind where chain_id = $1",
    [CHAIN_ID],
  );
  const known = new Map(rows.map(({ address, operator }) => [address, operator]));
  for (const address of escrows) {
    if (known.has(address)) continue;
    const operator = await readOperator(chain, address);
    const remember = "insert into indexer.escrow_kind values ($1, $2, $3) on conflict do nothing";
    await db.query(remember, [CHAIN_ID, address, operator]);
    known.set(address, operator);
  }
  const operators = escrows.map((address) => known.get(address) ?? null).filter((operator) => operator !== null);
  const own = new Set([...ownAddresses, ...operators.map(({ store }) => store)]);
  return { ...settings, operators, ownAddresses: [...own].sort() };
}

/** The operators among these contracts, as the chain shows them now. @throws as `withOperators` */
export async function readOperators(chain: PublicClient, escrows: readonly Address[]): Promise<readonly Operator[]> {
  const found = await Promise.all(escrows.map((address) => readOperator(chain, address)));
  return found.filter((operator) => operator !== null);
}

async function readOperator(chain: PublicClient, address: Address): Promise<Operator | null> {
  const call = { address, abi: operatorAbi } as const;
  const custody = await chain.readContract({ ...call, functionName: "ESCROW" }).catch(() => null);
  if (custody === null) {
    await expectEscrow(chain, address);
    return null;
  }
  const [collector, store] = await Promise.all([
    chain.readContract({ ...call, functionName: "COLLECTOR" }),
    chain.readContract({ address: custody, abi: commercePaymentsAbi, functionName: "getTokenStore", args: [address] }),
  ]);
  return { address, custody: lower(custody), collector: lower(collector), store: lower(store) };
}

/** Nodes report a missing function in as many ways as failures of their own, so an escrow has to answer as one. */
async function expectEscrow(chain: PublicClient, address: Address): Promise<void> {
  const owed = { address, abi: escrowAbi, functionName: "owed", args: [zeroAddress] } as const;
  await chain.readContract(owed).catch((error: unknown) => {
    const isNothing = (cause: unknown) => cause instanceof ContractFunctionZeroDataError;
    if (error instanceof BaseError && error.walk(isNothing) !== null) throw new AbsentEscrowError(address);
    throw error;
  });
}
