import type { Address } from "../wallet.ts";

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

const GWEI = 10n ** 9n;
/** No transaction offers more, in wei per gas. Base has asked for more only for minutes, and escrow outcomes have longer. */
export const MOST_FEE = 100n * GWEI;
/** Statements that have no deadline offer no more, in wei per gas, and wait while the market asks more. */
export const PATIENT_FEE = 2n * GWEI;
/** A tip is at most half of the base fee, within these bounds. Nodes of Base suggest a fifth on a quiet day. */
const TIP = { always: GWEI / 200n, most: 3n * GWEI };

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const middle = (values: readonly bigint[]): bigint =>
  values.toSorted((a, b) => (a < b ? -1 : Number(a > b)))[values.length >> 1] ?? 0n;

/** The market according to several readings: the middle of each, so that one wrong answer changes nothing. */
export function marketOf(readings: readonly Market[]): Market {
  const baseFee = middle(readings.map((reading) => reading.baseFee));
  const mostTip = larger(TIP.always, smaller(baseFee / 2n, TIP.most));
  return { baseFee, tip: smaller(middle(readings.map(({ tip }) => tip)), mostTip) };
}

/** What a new transaction offers. What it pays is the market's price; the rest is for the base fee to rise. */
export const offerIn = ({ baseFee, tip }: Market): Fees => ({
  maxFeePerGas: ((baseFee * 12n) / 10n + tip) * 2n,
  maxPriorityFeePerGas: tip,
});

/**
 * What a new transaction offers, and no more than `ceiling` and `MOST_FEE`.
 * @throws Error if the market asks for more
 */
export function feesWithin(ceiling: bigint | undefined, market: Market): Fees {
  const most = smaller(ceiling ?? MOST_FEE, MOST_FEE);
  const asked = market.baseFee + market.tip;
  if (asked > most)
    throw new Error(`gas costs ${asked} wei, and this transaction may offer ${most}: it waits until gas is cheaper`);
  const { maxFeePerGas, maxPriorityFeePerGas } = offerIn(market);
  return { maxFeePerGas: smaller(maxFeePerGas, most), maxPriorityFeePerGas };
}

/** Nodes want a tenth more of both fees before they replace a transaction, and more than nothing where it was zero. */
const raised = (was: bigint): bigint => was + was / 8n + 1n;

/**
 * What a replacement of a transaction offers; null while there should be none, because the market asks no more than the
 * transaction offers, or more than may be offered. What the transaction is worth does not count any more: all that were
 * sent after it wait for its nonce.
 * @param affordable the fee at which the balance pays for every unmined transaction
 */
export function replacementFor(offered: Fees, { baseFee, tip }: Market, affordable: bigint): Fees | null {
  const asked = baseFee + tip;
  if (offered.maxFeePerGas >= asked && offered.maxPriorityFeePerGas >= tip) return null;
  const least = larger(raised(offered.maxFeePerGas), asked);
  const most = smaller(smaller(asked * CEILING, affordable), MOST_FEE);
  if (least > most) return null;
  const now = offerIn({ baseFee, tip });
  const maxPriorityFeePerGas = larger(raised(offered.maxPriorityFeePerGas), tip);
  const maxFeePerGas = smaller(larger(least, now.maxFeePerGas), most);
  return maxPriorityFeePerGas > maxFeePerGas ? null : { maxFeePerGas, maxPriorityFeePerGas };
}
