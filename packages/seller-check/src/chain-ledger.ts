import {
  type Address,
  createPublicClient,
  type Hex,
  http,
  isAddressEqual,
  type PublicClient,
  parseAbi,
  parseEventLogs,
} from "viem";
import type { Ledger, Settled } from "./exam/ledger.ts";

const EVENTS = parseAbi([
  "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
]);
const [USED] = EVENTS;

/**
 * Reads a chain through its JSON-RPC URL.
 * @throws Error if the node does not answer
 */
export async function chainLedger(rpcUrl: string): Promise<Ledger> {
  const client = createPublicClient({ transport: http(rpcUrl), cacheTime: 0 });
  return ledgerOn(client, await client.getChainId());
}

/** Reads a chain through a client of one's own. */
export function ledgerOn(
  client: Pick<PublicClient, "getBlock" | "getLogs" | "getTransactionReceipt">,
  chainId: number,
): Ledger {
  return {
    network: `eip155:${chainId}`,
    now: async () => Number((await client.getBlock()).timestamp),
    block: async () => (await client.getBlock()).number,
    async settlement({ asset, from, nonce, since }) {
      const args = { authorizer: from, nonce };
      // A node may refuse to begin behind its head, so the block itself is asked for and left out.
      const logs = await client.getLogs({ address: asset, event: USED, args, fromBlock: since });
      const used = logs.find(({ blockNumber }) => blockNumber > since);
      return used === undefined ? null : transferOf(used.transactionHash, { asset, from, after: used.logIndex });
    },
    async spent({ asset, from, nonces, since }) {
      const args = { authorizer: from, nonce: [...nonces] };
      const logs =
        nonces.length === 0 ? [] : await client.getLogs({ address: asset, event: USED, args, fromBlock: since });
      const used = logs.filter(({ blockNumber }) => blockNumber > since);
      const moved = await Promise.all(
        used.map(({ transactionHash, logIndex }) => transferOf(transactionHash, { asset, from, after: logIndex })),
      );
      return moved.reduce((sum, one) => sum + (one === null || isAddressEqual(one.to, from) ? 0n : one.value), 0n);
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
