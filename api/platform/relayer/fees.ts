import { BaseError, ContractFunctionZeroDataError, type PublicClient, parseAbi } from "viem";
import { createRecent } from "../chain/batcher.ts";
import { forReading, type NodesClient } from "../chain/failover.ts";
import { larger, smaller } from "../chain/logs.ts";
import { READINGS } from "../chain/nodes.ts";
import type { Address } from "../wallet.ts";
import type { Sender } from "./sender.ts";

/** The fees that the newest block requires of a transaction, in wei per gas. */
export interface Market {
  readonly baseFee: bigint;
  /** The priority fee that a block's builder expects; zero without competition. */
  readonly tip: bigint;
}

/** The fees of a transaction, in wei per gas. */
export interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

/** Fees and their payer. */
export interface SendingTerms extends Fees {
  readonly account: Address;
}

/** A replacement never offers more than this multiple of the market's fees. */
export const CEILING = 4n;

const GWEI = 10n ** 9n;
/**
 * The limit of any transaction, in wei per gas. Base has exceeded it only for minutes, and escrow outcomes can wait
 * longer.
 */
export const MOST_FEE = 100n * GWEI;
/** The limit of statements without a deadline, in wei per gas. They wait while the market is above it. */
export const PATIENT_FEE = 2n * GWEI;
/** A tip is at most half of the base fee, within these bounds. Base's nodes suggest a fifth on a quiet day. */
const TIP = { always: GWEI / 200n, most: 3n * GWEI };

const middle = (values: readonly bigint[]): bigint =>
  values.toSorted((a, b) => (a < b ? -1 : Number(a > b)))[values.length >> 1] ?? 0n;

/**
 * Returns the market according to several readings: the median of each value, so that one wrong answer has no effect.
 */
export function marketOf(readings: readonly Market[]): Market {
  const baseFee = middle(readings.map((reading) => reading.baseFee));
  const mostTip = larger(TIP.always, smaller(baseFee / 2n, TIP.most));
  return { baseFee, tip: smaller(middle(readings.map(({ tip }) => tip)), mostTip) };
}

/** Returns the offer of a new transaction. It pays the market's price; the rest allows the base fee to rise. */
export const offerIn = ({ baseFee, tip }: Market): Fees => ({
  maxFeePerGas: ((baseFee * 12n) / 10n + tip) * 2n,
  maxPriorityFeePerGas: tip,
});

/**
 * Returns the offer of a new transaction, limited to `ceiling` and `MOST_FEE`.
 * @throws Error if the market is above the limit
 */
export function feesWithin(ceiling: bigint | undefined, market: Market): Fees {
  const most = smaller(ceiling ?? MOST_FEE, MOST_FEE);
  const asked = market.baseFee + market.tip;
  if (asked > most)
    throw new Error(`gas costs ${asked} wei, and this transaction may offer ${most}, so it waits until gas is cheaper`);
  const { maxFeePerGas, maxPriorityFeePerGas } = offerIn(market);
  return { maxFeePerGas: smaller(maxFeePerGas, most), maxPriorityFeePerGas };
}

/** Returns a fee by which nodes accept a replacement. They require a tenth more of both fees, and more than zero. */
const raised = (was: bigint): bigint => was + was / 8n + 1n;

/**
 * Returns the offer of a replacement for a transaction. Null if there should be none, because the market is at or below
 * the transaction's offer, or above the limit. The transaction's own value no longer matters, because all later ones
 * wait for its nonce.
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

/** The gas of an ordinary account's payment, for estimates. */
export const TYPICAL_GAS = 100_000n;
const TYPICAL_BYTES = 500n;

/**
 * The contract on OP-stack chains, including Base, that returns their parent chain's charge for data
 * (docs.optimism.io).
 */
const GAS_PRICE_ORACLE = "0x420000000000000000000000000000000000000f";
const ORACLE = parseAbi(["function getL1FeeUpperBound(uint256 unsignedTxSize) view returns (uint256)"]);
const COST_CACHE_MS = 30_000;

/**
 * Creates a reader of the current cost of one payment's transaction, in wei: its gas, and its data if a parent chain
 * charges for it.
 */
export function readCost({ client, conditions }: Pick<Sender, "client" | "conditions">): () => Promise<bigint> {
  const recent = createRecent<bigint>(COST_CACHE_MS);
  return async () => {
    const [{ market }, fee] = await Promise.all([conditions(), recent("data", () => askDataFee(client))]);
    return TYPICAL_GAS * (market.baseFee + market.tip) + fee;
  };
}

/** Returns zero without an oracle, because the chain is not a rollup, or is a local one. */
async function askDataFee(client: PublicClient): Promise<bigint> {
  try {
    const call = { address: GAS_PRICE_ORACLE, abi: ORACLE, functionName: "getL1FeeUpperBound" } as const;
    return await client.readContract({ ...call, args: [TYPICAL_BYTES] });
  } catch (error) {
    if (error instanceof BaseError && error.walk((e) => e instanceof ContractFunctionZeroDataError) !== null) return 0n;
    throw error;
  }
}

const CONDITIONS_CACHE_MS = 2_000;

/** The state of a sending account on the chain, and the market for its next transaction. */
export interface Conditions {
  readonly market: Market;
  /** Nonces below this are used on the chain. The value may lag; the ledger knows the transactions sent since. */
  readonly count: number;
  readonly balanceWei: bigint;
}

/** Returns the balance less a tenth for costs beyond gas limits: a rollup's fee for data on its parent chain. */
export const spendable = ({ balanceWei }: Conditions): bigint => (balanceWei * 9n) / 10n;

/**
 * Rejects a cost that the account cannot pay in addition to its reservations. The next read then asks the chain again.
 */
export function assertAffordable(
  { address, conditions }: { readonly address: Address; readonly conditions: ReadConditions },
  found: Conditions,
  { wei, reserved }: { readonly wei: bigint; readonly reserved: bigint },
): void {
  if (spendable(found) >= wei + reserved) return;
  conditions.forget();
  throw new Error(`the relayer ${address} has no gas: ${found.balanceWei} wei, of which ${reserved} are reserved`);
}

export interface ReadConditions {
  (): Promise<Conditions>;
  /** Drops the cached value, so that the next read asks the chain. */
  forget(): void;
}

/**
 * Creates a reader of the conditions, which asks the chain at most every two seconds, however many transactions are
 * sent.
 */
export function readConditions(client: NodesClient, address: Address): ReadConditions {
  const recent = createRecent<Conditions>(CONDITIONS_CACHE_MS);
  const read = () => recent(address, () => ask(client, address));
  return Object.assign(read, { forget: () => recent.forget(address) });
}

async function ask(client: NodesClient, address: Address): Promise<Conditions> {
  const [market, count, balanceWei] = await Promise.all([
    askMarket(client),
    client.getTransactionCount({ address }),
    client.getBalance({ address }),
  ]);
  return { market, count, balanceWei };
}

/** Makes readings one after the other, from different nodes. Those behind one address take turns. */
async function askMarket(client: NodesClient): Promise<Market> {
  const readings: Market[] = [];
  while (readings.length < READINGS) readings.push(await readMarket(forReading(client, readings.length)));
  return marketOf(readings);
}

async function readMarket(client: PublicClient): Promise<Market> {
  const [{ baseFeePerGas }, tip] = await Promise.all([client.getBlock(), client.estimateMaxPriorityFeePerGas()]);
  if (baseFeePerGas === null) throw new Error("the chain has no base fee, so it does not support EIP-1559");
  return { baseFee: baseFeePerGas, tip };
}
