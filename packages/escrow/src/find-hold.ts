import { type Address, type Client, getAbiItem, type Hex, type Log, parseEventLogs } from "viem";
import { getBlockNumber, getChainId, getLogs, getTransactionReceipt, readContract } from "viem/actions";
import { commercePaymentsAbi, escrowAbi } from "./abi.ts";
import { readCustody } from "./custody.ts";
import { type PaymentInfo, paymentId } from "./payment-info.ts";
import { FEE_BPS, placeOf } from "./terms.ts";

/** The number of blocks per request that common nodes allow. */
const BLOCKS_A_REQUEST = 10_000n;
const MOST_REQUESTS = 50;
const HELD = getAbiItem({ abi: escrowAbi, name: "Held" });
const RECLAIMED = getAbiItem({ abi: commercePaymentsAbi, name: "PaymentReclaimed" });

type HeldLog = Log<bigint, number, false, typeof HELD, true>;

/** A hold as the chain shows it. */
export interface FoundHold {
  readonly id: Hex;
  /** The contract that was called: an escrow or an operator. */
  readonly escrow: Address;
  /** The contract that holds the money: the escrow itself, or the one that the operator names. */
  readonly custody: Address;
  readonly transaction: Hex;
  readonly info: PaymentInfo;
}

export interface HoldKey {
  readonly id: Hex;
  /** The contract; if omitted, all contracts are searched for the event. */
  readonly escrow?: Address | undefined;
}

/**
 * Finds a hold by its payment id, newest blocks first, up to 500,000 blocks back (11 days on Base).
 * @returns null if there is no such hold
 */
export async function findHold(client: Client, { id, escrow }: HoldKey): Promise<FoundHold | null> {
  return newestFirst(client, async (range) => {
    const filter = { event: HELD, args: { id }, strict: true, ...range } as const;
    const logs = await getLogs(client, escrow === undefined ? filter : { ...filter, address: escrow });
    return (await describeAll(client, logs))[0] ?? null;
  });
}

/**
 * Finds a payer's own `reclaim`, past the operator, at the contract that holds the money; searches as far back as
 * `findHold`.
 * @returns the transaction; null if no such event is found
 */
export async function findReclaim(client: Client, { id, custody }: Pick<FoundHold, "id" | "custody">) {
  return newestFirst(client, async (range) => {
    const [log] = await getLogs(client, {
      address: custody,
      event: RECLAIMED,
      args: { paymentInfoHash: id },
      ...range,
    });
    return log?.transactionHash ?? null;
  });
}

interface Blocks {
  readonly fromBlock: bigint;
  readonly toBlock: bigint;
}

/** Returns the first match in ranges of blocks, from the head backward. */
async function newestFirst<T>(client: Client, look: (range: Blocks) => Promise<T | null>): Promise<T | null> {
  let toBlock = await getBlockNumber(client, { cacheTime: 0 });
  for (let request = 0; request < MOST_REQUESTS; request += 1) {
    const fromBlock = toBlock >= BLOCKS_A_REQUEST ? toBlock - BLOCKS_A_REQUEST + 1n : 0n;
    const found = await look({ fromBlock, toBlock });
    if (found !== null || fromBlock === 0n) return found;
    toBlock = fromBlock - 1n;
  }
  return null;
}

/** Returns the holds that a transaction made. @throws viem's error if there is no such transaction */
export async function holdsOf(client: Client, transaction: Hex): Promise<readonly FoundHold[]> {
  const receipt = await getTransactionReceipt(client, { hash: transaction });
  const logs = parseEventLogs({ abi: escrowAbi, eventName: "Held", logs: receipt.logs });
  return describeAll(client, logs);
}

/**
 * Returns the holds behind these events. Anyone can emit such an event, from a contract that does not implement the
 * rest.
 * @throws the node's error, if none of them is a hold
 */
async function describeAll(client: Client, logs: readonly DescribedLog[]): Promise<readonly FoundHold[]> {
  const described = await Promise.allSettled(logs.map((log) => describe(client, log)));
  const found = described.flatMap((one) => (one.status === "fulfilled" && one.value !== null ? [one.value] : []));
  const failed = described.find((one) => one.status === "rejected");
  if (found.length === 0 && failed !== undefined) throw failed.reason;
  return found;
}

type DescribedLog = Pick<HeldLog, "address" | "args" | "transactionHash">;

/**
 * Returns the full terms: those in the event, plus the contract's permanent roles. Null if they do not hash to its id.
 */
async function describe(client: Client, { address, args, transactionHash }: DescribedLog): Promise<FoundHold | null> {
  const { id, payer, receiver, amount, preApprovalExpiry, authorizationExpiry, refundExpiry, salt } = args;
  const [chainId, { address: escrow, custody }, token, feeReceiver] = await Promise.all([
    getChainId(client),
    readCustody(client, address),
    readContract(client, { address, abi: escrowAbi, functionName: "USDC" }),
    readContract(client, { address, abi: escrowAbi, functionName: "FEE_RECIPIENT" }),
  ]);
  const roles = { operator: escrow, payer, receiver, token, feeReceiver };
  const expiries = { preApprovalExpiry, authorizationExpiry, refundExpiry };
  const info = { ...roles, ...expiries, maxAmount: amount, minFeeBps: FEE_BPS, maxFeeBps: FEE_BPS, salt };
  if (paymentId(placeOf({ chainId, custody }), info) !== id) return null;
  return { id, escrow, custody, transaction: transactionHash, info };
}
