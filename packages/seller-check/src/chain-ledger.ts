import { type Address, createPublicClient, type Hex, http, isAddressEqual, parseAbi, parseEventLogs } from "viem";
import type { Ledger, Settled } from "./exam/ledger.ts";

const EVENTS = parseAbi([
  "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
]);
const [USED, TRANSFER] = EVENTS;

/**
 * Reads a chain through its JSON-RPC URL.
 * @throws Error if the node does not answer
 */
export async function chainLedger(rpcUrl: string): Promise<Ledger> {
  const client = createPublicClient({ transport: http(rpcUrl), cacheTime: 0 });
  const chainId = await client.getChainId();
  return {
    network: `eip155:${chainId}`,
    now: async () => Number((await client.getBlock()).timestamp),
    block: () => client.getBlockNumber(),
    async settlement({ asset, from, nonce, since }) {
      const args = { authorizer: from, nonce };
      // A node may refuse to begin behind its head, so the block itself is asked for and left out.
      const logs = await client.getLogs({ address: asset, event: USED, args, fromBlock: since });
      const used = logs.find(({ blockNumber }) => blockNumber > since);
      return used === undefined ? null : transferOf(used.transactionHash, { asset, from, after: used.logIndex });
    },
    async spent({ asset, from, since }) {
      const logs = await client.getLogs({ address: asset, event: TRANSFER, args: { from }, fromBlock: since });
      const out = logs.filter(
        ({ args, blockNumber }) => blockNumber > since && args.to !== undefined && !isAddressEqual(args.to, from),
      );
      return out.reduce((sum, { args }) => sum + (args.value ?? 0n), 0n);
    },
  };

  /** The transfer that follows the use of an authorization, in the same transaction. */
  async function transferOf(transaction: Hex, { asset, from, after }: TransferPlace): Promise<Settled | null> {
    const { logs } = await client.getTransactionReceipt({ hash: transaction });
    const transfers = parseEventLogs({ abi: EVENTS, eventName: "Transfer", logs });
    const found = transfers.find(
      ({ address, logIndex, args }) =>
        isAddressEqual(address, asset) && logIndex > after && isAddressEqual(args.from, from),
    );
    return found === undefined ? null : { transaction, to: found.args.to, value: found.args.value };
  }
}

interface TransferPlace {
  readonly asset: Address;
  readonly from: Address;
  readonly after: number;
}
