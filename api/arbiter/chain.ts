import {
  BaseError,
  isAddressEqual,
  isHash,
  type PublicClient,
  parseEventLogs,
  type TransactionReceipt,
  TransactionReceiptNotFoundError,
} from "viem";
import { usdcEventsAbi } from "../../contracts/abi.ts";
import { evaluatorAbi } from "../../packages/escrow/src/evaluator.ts";
import type { ChainReader } from "../platform/chain/chain.ts";
import { forReading, type NodesClient } from "../platform/chain/failover.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { TransactionQuestion, TransactionReading, Transactions, WalletTransfer } from "./evidence.ts";

const [AUTHORIZATION_USED, TRANSFER] = usdcEventsAbi;
/** A wallet that makes more transfers than this in one transaction is not making a purchase. */
const MOST_TRANSFERS = 32;
/** One attempt and one retry. */
const TRIES = 2;

export type FinalReader = Pick<ChainReader, "client" | "settlementStateNow">;

/** Creates a reader of transactions on these chains. It reports transfers only after they are final. */
export const createTransactions = (chains: Readonly<Record<Network, FinalReader>>): Transactions => ({
  async read(asked) {
    if (!isNetwork(asked.network)) return { outcome: "network_not_read" };
    for (let tries = 1; ; tries++) {
      const reading = await read(chains[asked.network], {
        ...asked,
        asset: NETWORKS[asked.network].usdc.address,
      }).catch(() => null);
      if (reading !== null) return reading;
      if (tries >= TRIES) return { outcome: "unavailable" };
    }
  },
});

const isNetwork = (network: string): network is Network => Object.hasOwn(NETWORKS, network);

/** Returns null if the nodes behind the RPC URL disagree. */
async function read(
  { client, settlementStateNow }: FinalReader,
  { transaction: hash, from, asset }: Pick<TransactionQuestion, "transaction" | "from"> & { readonly asset: Address },
): Promise<TransactionReading | null> {
  if (!isHash(hash)) return { outcome: "not_found" };
  // A node may lag, so one miss is not enough to report a transaction as unknown.
  const receipt = (await receiptOf(client, hash)) ?? (await receiptOf(client, hash));
  if (receipt === null) return { outcome: "not_found" };
  const { blockNumber, blockHash } = receipt;
  if ((await settlementStateNow({ block: Number(blockNumber), blockHash })) !== "final")
    return { outcome: "not_final" };
  const [again, { timestamp }] = await Promise.all([receiptOf(client, hash), client.getBlock({ blockHash })]);
  if (again === null || !isSame(receipt, again)) return null;
  if (receipt.status !== "success") return { outcome: "reverted" };
  const transfers = transfersIn(receipt, { asset, from });
  if (transfers.length > MOST_TRANSFERS) return { outcome: "too_many_transfers" };
  const coded = await withCode(client, transfers, blockNumber);
  return { outcome: "final", block: Number(blockNumber), time: Number(timestamp), transfers: coded };
}

/** Adds whether each recipient has code now, because a deposit address may get its code after the payment. */
async function withCode(
  client: NodesClient,
  transfers: readonly Transferred[],
  paidIn: bigint,
): Promise<readonly WalletTransfer[]> {
  const head = await client.getBlockNumber();
  const recipients = [...new Set(transfers.map(({ to }) => to))];
  const read = async (to: Address) => [to, head < paidIn ? null : await hasCode(client, to, head)] as const;
  const found = new Map(await Promise.all(recipients.map(read)));
  return transfers.map((one) => ({ ...one, toHasCode: found.get(one.to) ?? null }));
}

/** Returns null if a node does not answer. An account has no code only if two readings agree on that. */
async function hasCode(client: NodesClient, address: Address, blockNumber: bigint): Promise<boolean | null> {
  const read = (reading: number): Promise<Hex | undefined | null> =>
    forReading(client, reading)
      .getCode({ address, blockNumber })
      .catch(() => null);
  const first = await read(0);
  const code = first === undefined ? await read(1) : first;
  if (code === null) return null;
  return code !== undefined && code !== "0x";
}

const receiptOf = (client: PublicClient, hash: Hex): Promise<TransactionReceipt | null> =>
  client.getTransactionReceipt({ hash }).catch((error: unknown) => {
    if (error instanceof TransactionReceiptNotFoundError) return null;
    throw error;
  });

const isSame = (one: TransactionReceipt, other: TransactionReceipt): boolean =>
  one.blockHash === other.blockHash && one.status === other.status && outline(one) === outline(other);

const outline = ({ logs }: TransactionReceipt): string =>
  JSON.stringify(logs.map(({ address, topics, data, logIndex }) => [address, topics, data, logIndex]));

type Transferred = Omit<WalletTransfer, "toHasCode">;

/** Logs of other contracts prove nothing, because a contract can log whatever it likes. */
function transfersIn(
  { logs }: TransactionReceipt,
  { asset, from }: { readonly asset: Address; readonly from: Address },
): readonly Transferred[] {
  const own = logs.filter(({ address }) => address.toLowerCase() === asset);
  // USDC logs the use of an authorization immediately before the transfer.
  const authorized = new Set(
    parseEventLogs({ abi: [AUTHORIZATION_USED], logs: own }).flatMap(({ args, logIndex }) =>
      args.authorizer.toLowerCase() === from ? [logIndex + 1] : [],
    ),
  );
  return parseEventLogs({ abi: [TRANSFER], logs: own }).flatMap(({ args, logIndex }) => {
    const [sender, to] = [args.from.toLowerCase(), args.to.toLowerCase() as Address];
    if (sender !== from || to === from || args.value === 0n) return [];
    return [{ logIndex, asset, to, value: args.value, byAuthorization: authorized.has(logIndex) }];
  });
}

/**
 * Checks that the contract executes this arbiter's verdicts on ERC-8183 jobs. If it waited for another arbiter, every
 * job that names it would expire.
 * @throws Error with the address that was found or the node's reason
 */
export async function requireEvaluator(client: PublicClient, address: Address, arbiter: Address): Promise<void> {
  const call = { address, abi: evaluatorAbi, functionName: "ARBITER" } as const;
  const named = await client.readContract(call).catch((cause: unknown) => {
    const reason = cause instanceof BaseError ? cause.shortMessage : "the node did not answer";
    throw new Error(`EVALUATOR_ADDRESS is wrong, or Base cannot be reached: ${address}: ${reason}`, { cause });
  });
  if (!isAddressEqual(named, arbiter))
    throw new Error(`the arbiter of ${address} is ${named}, but ARBITER_PRIVATE_KEY belongs to ${arbiter}`);
}
