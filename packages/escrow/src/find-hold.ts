import { type Address, type Client, getAbiItem, getAddress, type Hex, type Log, parseEventLogs } from "viem";
import { getBlockNumber, getChainId, getLogs, getTransactionReceipt, readContract } from "viem/actions";
import { escrowAbi } from "./abi.ts";
import { type PaymentInfo, paymentId } from "./payment-info.ts";
import { FEE_BPS } from "./terms.ts";

/** How many blocks to request at a time: what common nodes allow. */
const BLOCKS_A_REQUEST = 10_000n;
const MOST_REQUESTS = 50;
const HELD = getAbiItem({ abi: escrowAbi, name: "Held" });

type HeldLog = Log<bigint, number, false, typeof HELD, true>;

/** A hold as the chain shows it. */
export interface FoundHold {
  readonly id: Hex;
  readonly escrow: Address;
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
  let toBlock = await getBlockNumber(client, { cacheTime: 0 });
  for (let request = 0; request < MOST_REQUESTS; request += 1) {
    const fromBlock = toBlock >= BLOCKS_A_REQUEST ? toBlock - BLOCKS_A_REQUEST + 1n : 0n;
    const filter = { event: HELD, args: { id }, strict: true, fromBlock, toBlock } as const;
    const logs = await getLogs(client, escrow === undefined ? filter : { ...filter, address: escrow });
    for (const log of logs) {
      const found = await describe(client, log);
      if (found !== null) return found;
    }
    if (fromBlock === 0n) return null;
    toBlock = fromBlock - 1n;
  }
  return null;
}

/** The holds that a transaction made. @throws viem's error if there is no such transaction */
export async function holdsOf(client: Client, transaction: Hex): Promise<readonly FoundHold[]> {
  const receipt = await getTransactionReceipt(client, { hash: transaction });
  const logs = parseEventLogs({ abi: escrowAbi, eventName: "Held", logs: receipt.logs });
  const found = await Promise.all(logs.map((log) => describe(client, log)));
  return found.filter((hold) => hold !== null);
}

/** The full terms: those in the event, plus the contract's permanent roles. Null if they do not hash to its id. */
async function describe(
  client: Client,
  { address, args, transactionHash }: Pick<HeldLog, "address" | "args" | "transactionHash">,
): Promise<FoundHold | null> {
  const { id, payer, receiver, amount, preApprovalExpiry, authorizationExpiry, refundExpiry, salt } = args;
  const [chainId, token, feeReceiver] = await Promise.all([
    getChainId(client),
    readContract(client, { address, abi: escrowAbi, functionName: "USDC" }),
    readContract(client, { address, abi: escrowAbi, functionName: "FEE_RECIPIENT" }),
  ]);
  const escrow = getAddress(address);
  const roles = { operator: escrow, payer, receiver, token, feeReceiver };
  const expiries = { preApprovalExpiry, authorizationExpiry, refundExpiry };
  const info = { ...roles, ...expiries, maxAmount: amount, minFeeBps: FEE_BPS, maxFeeBps: FEE_BPS, salt };
  return paymentId({ chainId, escrow }, info) === id ? { id, escrow, transaction: transactionHash, info } : null;
}
