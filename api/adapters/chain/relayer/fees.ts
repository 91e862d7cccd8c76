import type { Address } from "../../../kernel/wallet.ts";

/** What the newest block asks of a transaction, in wei per gas. */
export interface Market {
  readonly baseFee: bigint;
  /** The priority fee that a block's builder expects; zero where nobody competes. */
  readonly tip: bigint;
}

/** What a transaction offers, in wei per gas. */
export interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

/** Fees, and who pays them. */
export interface SendingTerms extends Fees {
  readonly account: Address;
}

/** A replacement never offers more than this many times what the market asks. */
export const CEILING = 4n;

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/** What a new transaction offers. What it pays is the market's price; the rest is for the base fee to rise. */
export const offerIn = ({ baseFee, tip }: Market): Fees => ({
  maxFeePerGas: ((baseFee * 12n) / 10n + tip) * 2n,
  maxPriorityFeePerGas: tip,
});

/** Nodes want a tenth more of both fees before they replace a transaction, and more than nothing where it was zero. */
const raised = (was: bigint): bigint => was + was / 8n + 1n;

/**
 * What a replacement of a transaction offers; null while there should be none, because the market asks no more than the
 * transaction offers, or more than may be offered.
 * @param affordable the fee at which the balance pays for every unmined transaction
 */
export function replacementFor(offered: Fees, { baseFee, tip }: Market, affordable: bigint): Fees | null {
  const asked = baseFee + tip;
  if (offered.maxFeePerGas >= asked && offered.maxPriorityFeePerGas >= tip) return null;
  const least = larger(raised(offered.maxFeePerGas), asked);
  const most = smaller(asked * CEILING, affordable);
  if (least > most) return null;
  const now = offerIn({ baseFee, tip });
  const maxPriorityFeePerGas = larger(raised(offered.maxPriorityFeePerGas), tip);
  const maxFeePerGas = smaller(larger(least, now.maxFeePerGas), most);
  return maxPriorityFeePerGas > maxFeePerGas ? null : { maxFeePerGas, maxPriorityFeePerGas };
}
