import { BaseError, InsufficientFundsError, type PublicClient } from "viem";
import { usdcAbi } from "../../../contracts/abi.ts";
import { isOutOfGas, isTransport, revertReason } from "../../platform/chain/rpc.ts";
import { formatUsd } from "../../platform/money.ts";
import type { NetworkFacts } from "../../platform/networks.ts";
import { type SendingTerms, TYPICAL_GAS } from "../../platform/relayer/fees.ts";
import type { Relayer } from "../../platform/relayer/relayer.ts";
import type { Address } from "../../platform/wallet.ts";

/**
 * The gas limit of one payment, whether it settles or fails. An ordinary account needs about 96,000; the rest is for
 * wallets that check signatures in their own code (docs/decisions/gas-limit.md).
 */
export const MOST_GAS = 350_000n;

/** Explains why a payment that needs more is refused. */
export const tooMuchGas = (most = MOST_GAS): string =>
  `Settling this payment would take more than ${most.toLocaleString("en")} gas, because of how the paying account checks signatures. Nothing was charged; pay from another account.`;

/** The sender of the transaction; null if it is sent from elsewhere and its gas is not ours. */
export type SentBy = Pick<Relayer, "terms" | "costWei"> | null;

/** The limit on the cost of a settlement. */
export interface CostCeiling {
  /** The share of the price. */
  readonly percent: number;
  /** The assumed price of one ETH, in US dollars. */
  readonly ethUsd: number;
}

/**
 * Rejects while settling a payment costs more than its share of the price.
 * @param price in atomic units of USDC
 */
export async function assertWorthwhile(sentBy: SentBy, ceiling: CostCeiling | null, price: bigint): Promise<void> {
  if (sentBy === null || ceiling === null) return;
  const wei = await sentBy.costWei();
  const cost = (wei * BigInt(ceiling.ethUsd)) / WEI_IN_ATOMIC;
  if (cost * 100n <= price * BigInt(ceiling.percent)) return;
  throw new Error(
    `settling a payment of ${price} atomic USDC would cost ${cost}, more than ${ceiling.percent}%, so it waits until gas is cheaper`,
  );
}

/**
 * Returns the maximum fee for a payment's transaction, in wei per gas. At that fee, an ordinary payment costs its share
 * of the price.
 * @param price in atomic units of USDC
 */
export const mostFeeFor = (ceiling: CostCeiling | null, price: bigint): bigint | undefined =>
  ceiling === null
    ? undefined
    : (price * BigInt(ceiling.percent) * WEI_IN_ATOMIC) / (100n * BigInt(ceiling.ethUsd) * TYPICAL_GAS);

/** An ETH is 10^18 wei, a dollar 10^6 atomic units of USDC. */
const WEI_IN_ATOMIC = 10n ** 12n;

/** Returns the payer's balance next to the price, in words. Rejects if the chain cannot be read. */
export async function comparedBalance(
  client: PublicClient,
  { usdc, money }: NetworkFacts,
  { payer, price }: { readonly payer: Address; readonly price: bigint },
): Promise<string> {
  const balance = await client.readContract({
    address: usdc.address,
    abi: usdcAbi,
    functionName: "balanceOf",
    args: [payer],
  });
  return `${payer} has ${formatUsd(balance)} ${money}, and the price is ${formatUsd(price)} ${money}`;
}

/** The sending terms of a simulation. */
export type SimulatedWith = Partial<SendingTerms> & { readonly gas?: bigint };

/**
 * Simulates a payment as it will be mined, with its sender, fees, and gas limit. Returns null if it would succeed,
 * otherwise the contract's error, or `needs more gas`. Rejects if the chain cannot be read.
 * @param limit if given, no simulation exceeds it, because a payer may have named a contract that uses all the gas it
 * gets
 */
export async function failureOf(
  sentBy: SentBy,
  simulate: (using: SimulatedWith) => Promise<unknown>,
  limit?: bigint,
): Promise<{ readonly error: unknown } | "needs more gas" | null> {
  const most = limit ?? MOST_GAS;
  const terms = sentBy === null ? null : await sentBy.terms(most);
  const attempt = (using: SimulatedWith) =>
    simulate(using).then(
      () => null,
      (error: unknown) => ({ error }),
    );
  const failure = await attempt(terms === null ? {} : { ...terms, gas: most });
  if (failure === null) return null;
  const { error } = failure;
  if (limit === undefined && terms !== null && mayLackGas(error) && (await attempt(terms)) === null)
    return "needs more gas";
  if (isOutOfGas(error)) return "needs more gas";
  if (terms !== null && cannotPay(error)) throw new Error(`the relayer ${terms.account} has no gas`);
  if (isTransport(error)) throw error;
  return failure;
}

/** Our knowledge of the balance is slightly old, so the node's error decides. */
const cannotPay = (error: unknown): boolean =>
  error instanceof BaseError && error.walk((e) => e instanceof InsufficientFundsError) !== null;

/** USDC does not distinguish a wallet that ran out of gas from one that refused. */
const mayLackGas = (error: unknown): boolean =>
  isOutOfGas(error) || (!isTransport(error) && /invalid signature|without a reason/i.test(revertReason(error)));
