import { type Call, type Fault, type Reply, refuse, replyTo } from "../chain/rpc.ts";

/** A node's position on the chain. */
export interface Position {
  readonly head: bigint;
  readonly safe: bigint;
  readonly finalized: bigint;
}

export const quantity = (value: bigint): string => `0x${value.toString(16)}`;
export const numberOf = (value: unknown): bigint | null =>
  typeof value === "string" && /^0x[0-9a-f]{1,16}$/i.test(value) ? BigInt(value) : null;

/** The index of the block among the parameters of a state read. */
const STATE_BLOCK: Readonly<Record<string, number>> = {
  eth_call: 1,
  eth_estimateGas: 1,
  eth_getBalance: 1,
  eth_getCode: 1,
  eth_getStorageAt: 2,
  eth_getTransactionCount: 1,
};
const BY_NUMBER = new Set(["eth_getBlockByNumber", "eth_getBlockReceipts", "eth_getBlockTransactionCountByNumber"]);
type Ask = (call: Call) => Promise<Reply>;

export type Filter = { readonly fromBlock?: unknown; readonly toBlock?: unknown; readonly blockHash?: unknown };

/** A node without any block after its head, which still accepts transactions. */
export const viewAt =
  (at: Position): Fault =>
  async (call, pass) => {
    const params = [...(call.params ?? [])];
    const place = BY_NUMBER.has(call.method) ? 0 : STATE_BLOCK[call.method];
    if (place !== undefined) {
      const isUnknown = isAhead(at, params[place]);
      if (isUnknown) return place === 0 ? replyTo(call, null) : refuse(call, -32000, "header not found");
      params[place] = known(at, params[place]);
      return pass({ ...call, params });
    }
    switch (call.method) {
      case "eth_blockNumber":
        return replyTo(call, quantity(at.head));
      case "eth_getLogs":
        return logsUpTo(at, call, pass);
      case "eth_getBlockByHash":
      case "eth_getTransactionReceipt":
        return hideAfter(at, call, await pass(call));
      case "eth_getTransactionByHash":
        return asPendingAfter(at, call, await pass(call));
      default:
        return pass(call);
    }
  };

/** The block that this node returns for a tag or a number. */
function known(at: Position, tag: unknown): unknown {
  if (tag === "safe") return quantity(at.safe);
  if (tag === "finalized") return quantity(at.finalized);
  const isExact = tag === "earliest" || numberOf(tag) !== null || (typeof tag === "object" && tag !== null);
  return isExact ? tag : quantity(at.head);
}

const isAhead = (at: Position, tag: unknown): boolean => (numberOf(tag) ?? 0n) > at.head;

async function logsUpTo(at: Position, call: Call, pass: Ask): Promise<Reply> {
  const filter = (call.params?.[0] ?? {}) as Filter;
  if (filter.blockHash !== undefined) {
    const block = await pass({ id: call.id, method: "eth_getBlockByHash", params: [filter.blockHash, false] });
    return (blockOf(block.result) ?? 0n) > at.head ? refuse(call, -32000, "unknown block") : pass(call);
  }
  const fromBlock = known(at, filter.fromBlock);
  if (isAhead(at, fromBlock)) return replyTo(call, []);
  const toBlock = isAhead(at, filter.toBlock) ? quantity(at.head) : known(at, filter.toBlock);
  return pass({ ...call, params: [{ ...filter, fromBlock, toBlock }] });
}

type InBlock = { readonly number?: unknown; readonly blockNumber?: unknown } | null;

/** The block number of a block, a receipt, or a transaction. */
const blockOf = (result: unknown): bigint | null => {
  const found = result as InBlock;
  return numberOf(found?.blockNumber) ?? numberOf(found?.number);
};

const hideAfter = ({ head }: Position, call: Call, reply: Reply): Reply =>
  (blockOf(reply.result) ?? 0n) > head ? replyTo(call, null) : reply;

const asPendingAfter = ({ head }: Position, call: Call, reply: Reply): Reply =>
  (blockOf(reply.result) ?? 0n) > head
    ? replyTo(call, { ...(reply.result as object), blockNumber: null, blockHash: null, transactionIndex: null })
    : reply;

/**
 * A provider whose nodes have only the state of old blocks. For each kind of call, every `knows`-th reaches a node that
 * has them completely.
 */
export function pruned(knows: number): Fault {
  const asked = new Map<string, number>();
  return async (call, pass) => {
    const times = (asked.get(call.method) ?? 0) + 1;
    asked.set(call.method, times);
    if (times % knows === 0) return pass(call);
    switch (call.method) {
      case "eth_getLogs":
        return replyTo(call, []);
      case "eth_getTransactionReceipt":
        return replyTo(call, null);
      case "eth_getBlockByHash":
        return refuse(call, 4444, "pruned history unavailable");
      case "eth_getBlockByNumber":
        return String(call.params?.[0]).startsWith("0x") ? replyTo(call, null) : pass(call);
      default:
        return pass(call);
    }
  };
}
