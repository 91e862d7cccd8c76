import { BaseError, isAddressEqual, type PublicClient, zeroAddress } from "viem";
import { escrowAbi, operatorAbi } from "../../contracts/abi.ts";
import { COMMERCE_PAYMENTS, commercePaymentsAbi } from "../../contracts/commerce-payments.ts";
import { type EscrowContract, requireCommercePayments } from "../payments/index.ts";
import { isTransport } from "../platform/chain/rpc.ts";
import { NETWORKS } from "../platform/networks.ts";
import type { Address } from "../platform/wallet.ts";

/** Thrown if no node responded, so that the contracts are unknown. */
export class Unread extends Error {}

/** Returns why the roles could not be read: the contract is a different one, or the node did not respond. */
const unreadable = (address: Address, cause: unknown): Error =>
  isRefused(cause)
    ? new Error(`ESCROW_ADDRESSES is wrong: no escrow contract exists at ${address} on Base`, { cause })
    : new Unread(`BASE_RPC_URL is not responding: the escrow contract ${address} cannot be read`, { cause });

const isRefused = (cause: unknown): boolean => cause instanceof BaseError && !isTransport(cause);

const lower = (account: Address) => account.toLowerCase() as Address;

/**
 * Reads the contracts at these addresses, with their roles: escrows, and operators over base/commerce-payments, which
 * have `ESCROW()`.
 * @throws Unread if no node responds; another Error if an address is neither kind, or an operator does not use the
 * canonical contracts
 */
export async function readContracts(
  client: PublicClient,
  network: EscrowContract["network"],
  addresses: readonly Address[],
): Promise<readonly EscrowContract[]> {
  const read = async (address: Address): Promise<EscrowContract> => {
    const call = (functionName: "USDC" | "ARBITER" | "FEE_RECIPIENT") =>
      client.readContract({ address, abi: escrowAbi, functionName });
    const roles = Promise.all([call("USDC"), call("ARBITER"), call("FEE_RECIPIENT"), readKind(client, address)]);
    const [usdc, arbiter, feeRecipient, kind] = await roles.catch((cause: unknown) => {
      throw cause instanceof WrongCustody ? cause : unreadable(address, cause);
    });
    if (!isAddressEqual(usdc, NETWORKS[network].usdc.address))
      throw new Error(`ESCROW_ADDRESSES is wrong: ${address} is an escrow for ${usdc}, which is not USDC on Base`);
    return { network, address, ...kind, usdc: lower(usdc), arbiter: lower(arbiter), feeRecipient: lower(feeRecipient) };
  };
  const contracts = await Promise.all(addresses.map(read));
  if (contracts.some(({ scheme }) => scheme === "auth-capture")) await requireCanonical(client);
  return contracts;
}

async function requireCanonical(client: PublicClient): Promise<void> {
  try {
    await requireCommercePayments(client);
  } catch (error) {
    const cause = error instanceof BaseError ? error : (error as Error).cause;
    if (cause === undefined || isRefused(cause)) throw error;
    throw new Unread("BASE_RPC_URL is not responding: base/commerce-payments cannot be read", { cause });
  }
}

class WrongCustody extends Error {}

type Kind = Pick<EscrowContract, "scheme" | "custody" | "collector" | "store">;

async function readKind(client: PublicClient, address: Address): Promise<Kind> {
  const custody = await client.readContract({ address, abi: operatorAbi, functionName: "ESCROW" }).catch(refused);
  if (custody === null) {
    // Only the escrow has it. Any other contract that rejects ESCROW() is of neither kind.
    await client.readContract({ address, abi: escrowAbi, functionName: "owed", args: [zeroAddress] });
    return { scheme: "commerce", custody: address, collector: address, store: address };
  }
  const call = { address, abi: operatorAbi } as const;
  const [collector, feeIsAmount] = await Promise.all([
    client.readContract({ ...call, functionName: "COLLECTOR" }),
    client.readContract({ ...call, functionName: "FEE_IS_AMOUNT" }),
  ]);
  const wanted = COMMERCE_PAYMENTS;
  const isCanonical = isAddressEqual(custody, wanted.escrow) && isAddressEqual(collector, wanted.collector);
  if (!isCanonical || feeIsAmount !== wanted.feeIsAmount)
    throw new WrongCustody(
      `ESCROW_ADDRESSES is wrong: the operator ${address} uses ${custody} and ${collector}; expected base/commerce-payments version 1.0, ${wanted.escrow} and ${wanted.collector}`,
    );
  const inCustody = { address: custody, abi: commercePaymentsAbi } as const;
  const store = await client.readContract({ ...inCustody, functionName: "getTokenStore", args: [address] });
  return { scheme: "auth-capture", custody: lower(custody), collector: lower(collector), store: lower(store) };
}

function refused(error: unknown): null {
  if (isTransport(error)) throw error;
  return null;
}
