import type { Address, Hex } from "viem";
import { connectChain } from "../../indexer/chain.ts";
import { readOperators } from "../../indexer/operators.ts";
import type { TestChain } from "../support/chain/chain.ts";
import { startFaultyNode } from "../support/chain/nodes.ts";
import { type Call, refuse, replyTo, serveNode } from "../support/chain/rpc.ts";

/** A node's JSON-RPC responses about a chain that no longer grows. */
export interface RecordedChain {
  /** The escrow contracts that an index of this chain follows. */
  readonly escrows: readonly Address[];
  readonly blocks: readonly Block[];
  readonly logs: readonly Log[];
  /** By transaction. */
  readonly receipts: Readonly<Record<Hex, object>>;
  /** The response to each call, by its target and data. */
  readonly calls: Readonly<Record<string, unknown>>;
}

interface Block {
  readonly number: Hex;
  readonly hash: Hex;
  readonly transactions: readonly { readonly hash: Hex }[];
}

interface Log {
  readonly address: Address;
  readonly topics: readonly Hex[];
  readonly blockNumber: Hex;
  readonly blockHash: Hex;
}

interface Filter {
  readonly address?: Address | readonly Address[];
  readonly topics?: readonly (Hex | readonly Hex[] | null)[];
  readonly fromBlock?: Hex;
  readonly toBlock?: Hex;
  readonly blockHash?: Hex;
}

const keyOf = ({ params }: Call): string => {
  const [{ to, data, input }] = params as [{ to: Address; data?: Hex; input?: Hex }];
  return `${to} ${data ?? input}`.toLowerCase();
};

/** Records everything that an indexer of these escrows may request from the chain. */
export async function recordChain({ client, rpcUrl }: TestChain, escrows: readonly Address[]): Promise<RecordedChain> {
  const ask = (method: string, ...params: unknown[]) => client.request({ method, params } as never) as Promise<never>;
  const head = Number(await client.getBlockNumber());
  const numbers = Array.from({ length: head + 1 }, (_, n): Hex => `0x${n.toString(16)}`);
  const blocks: readonly Block[] = await Promise.all(numbers.map((n) => ask("eth_getBlockByNumber", n, true)));
  const logs: readonly Log[] = await ask("eth_getLogs", { fromBlock: "0x0", toBlock: "latest" });
  const hashes = blocks.flatMap(({ transactions }) => transactions.map(({ hash }) => hash));
  const receipts = await Promise.all(hashes.map(async (hash) => [hash, await ask("eth_getTransactionReceipt", hash)]));
  const calls = new Map<string, unknown>();
  const node = await startFaultyNode({ rpcUrl });
  node.become(async (call, pass) => {
    const reply = await pass(call);
    if (call.method === "eth_call" && reply.result !== undefined) calls.set(keyOf(call), reply.result);
    return reply;
  });
  await readOperators(connectChain(node.url), escrows);
  node.stop();
  return { escrows, blocks, logs, receipts: Object.fromEntries(receipts), calls: Object.fromEntries(calls) };
}

/** Serves a recorded chain. */
export function replayChain({ blocks, logs, receipts, calls }: RecordedChain) {
  const head = blocks.length - 1;
  const at = (tag: unknown) => (typeof tag === "string" && tag.startsWith("0x") ? Number(tag) : head);
  const shown = (block: Block | undefined, isFull: unknown) =>
    block && (isFull === true ? block : { ...block, transactions: block.transactions.map(({ hash }) => hash) });
  const isWanted = (log: Log, { address, topics = [], fromBlock, toBlock, blockHash }: Filter) =>
    (blockHash === undefined
      ? Number(log.blockNumber) >= at(fromBlock ?? "0x0") && Number(log.blockNumber) <= at(toBlock)
      : log.blockHash === blockHash) &&
    (address === undefined || [address].flat().some((one) => one.toLowerCase() === log.address)) &&
    topics.every((topic, n) => topic === null || [topic].flat().some((one) => one === log.topics[n]));
  return serveNode({
    answer: async (call) => {
      const [first, second] = call.params ?? [];
      switch (call.method) {
        case "eth_chainId":
          return replyTo(call, "0x2105");
        case "eth_getBlockByNumber":
          return replyTo(call, shown(blocks[at(first)], second) ?? null);
        case "eth_getBlockByHash":
          return replyTo(
            call,
            shown(
              blocks.find(({ hash }) => hash === first),
              second,
            ) ?? null,
          );
        case "eth_getLogs":
          return replyTo(
            call,
            logs.filter((log) => isWanted(log, first as Filter)),
          );
        case "eth_getTransactionReceipt":
          return replyTo(call, receipts[first as Hex] ?? null);
        case "eth_call":
          return keyOf(call) in calls ? replyTo(call, calls[keyOf(call)]) : refuse(call, 3, "execution reverted");
        default:
          return refuse(call, -32_601, `The recorded chain does not have ${call.method}`);
      }
    },
  });
}
