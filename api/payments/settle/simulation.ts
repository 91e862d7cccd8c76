import { BaseError, InsufficientFundsError, type PublicClient } from "viem";
import { usdcAbi } from "../../../contracts/abi.ts";
import { isOutOfGas, isTransport, revertReason } from "../../platform/chain/rpc.ts";
import { formatUsd } from "../../platform/money.ts";
import type { NetworkFacts } from "../../platform/networks.ts";
import { type SendingTerms, TYPICAL_GAS } from "../../platform/relayer/fees.ts";
import type { Relayer } from "../../platform/relayer/relayer.ts";
import type { Address } from "../../platform/wallet.ts";

/**
 * The most gas that one payment may use, whether it settles or fails: an ordinary account's needs about 96,000, and the
 * rest is for wallets that check signatures in their own code (docs/decisions/gas-limit.md).
 */
export const MOST_GAS = 350_000n;

/** Why a payment that needs more is refused. */
export const tooMuchGas = (most = MOST_GAS): string =>
  `Settling this payment would take more than ${most.toLocaleString("en")} gas, because of how the paying account checks signatures. Nothing was charged; pay from another account.`;

/** Who would send the transaction; null if somebody else does, whose gas is not ours. */
export type SentBy = Pick<Relayer, "terms" | "costWei"> | null;

/** What a settlement may cost. */
export interface CostCeiling {
  /** Of its price. */
  readonly percent: number;
  /** What one ETH is reckoned at, in US dollars. */
  readonly ethUsd: number;
}

/**
 * Rejects while settling a payment costs more than its share.
 * @param price in atomic units of USDC
 */
export async function assertWorthwhile(sentBy: SentBy, ceiling: CostCeiling | null, price: bigint): Promise<void> {
  if (sentBy === null || ceiling === null) return;
  const wei = await sentBy.costWei();
  const cost = (wei * BigInt(ceiling.ethUsd)) / WEI_IN_ATOMIC;
  if (cost * 100n <= price * BigInt(ceiling.percent)) return;
  throw new Error(
    `settling a payment of ${price} atomic USDC would cost ${cost}, more than ${ceiling.percent}%: it waits until gas is cheaper`,
  );
}

/**
 * The most that the transaction of a payment may offer, in wei per gas: an ordinary payment at that fee costs its share.
 * @param price in atomic units of USDC
 */
export const mostFeeFor = (ceiling: CostCeiling | null, price: bigint): bigint | undefined =>
  ceiling === null
    ? undefined
    : (price * BigInt(ceiling.percent) * WEI_IN_ATOMIC) / (100n * BigInt(ceiling.ethUsd) * TYPICAL_GAS);

/** An ETH is 10^18 wei, a dollar 10^6 atomic units of USDC. */
const WEI_IN_ATOMIC = 10n ** 12n;

/** What a payer has, and what it would have to pay. Rejects if the chain cannot be read. */
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

/** What a simulation is given beside the call. */
export type SimulatedWith = Partial<SendingTerms> & { readonly gas?: bigint };

/**
 * Simulates a payment as it will be mined: by its sender, at its fees and within its gas limit. Null if it would succeed,
 * else the contract's error, or that it needs more gas. Rejects if the chain cannot be read.
 * @param limit if given, nothing is tried with more: a payer may have named a contract that uses all it gets
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

/** What is known of the balance is a moment old; the node knows better. */
const cannotPay = (error: unknown): boolean =>
  error instanceof BaseError && error.walk((e) => e instanceof InsufficientFundsError) !== null;

/** USDC cannot tell a wallet that ran out of gas from one that says no. */
const mayLackGas = (error: unknown): boolean =>
  isOutOfGas(error) || (!isTransport(error) && /invalid signature|without a reason/i.test(revertReason(error)));
