import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { serveHttp } from "../http-server.ts";
import type { TestChain } from "./chain.ts";

/** One JSON-RPC call. */
export interface Call {
  readonly id: number;
  readonly method: string;
  readonly params?: readonly unknown[];
}

export interface Reply {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

/** What the node does with a call: its reply, or null to hang up on the whole request. */
export type Fault = (call: Call, pass: (call: Call) => Promise<Reply>) => Promise<Reply | null>;

/** A JSON-RPC node in front of a chain that can be made to fail or lie. */
export interface FaultyNode {
  readonly url: string;
  /** From now on; null makes the node honest again. */
  readonly become: (fault: Fault | null) => void;
  readonly stop: () => void;
}

export async function startFaultyNode(chain: TestChain): Promise<FaultyNode> {
  let fault: Fault | null = null;
  const pass = async (call: Call): Promise<Reply> => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(chain.rpcUrl, {
      method: "POST",
      headers,
      body: JSON.stringify({ jsonrpc: "2.0", ...call }),
    });
    return (await response.json()) as Reply;
  };
  const reply = async (incoming: IncomingMessage): Promise<string | null> => {
    const asked = JSON.parse(await text(incoming)) as Call | Call[];
    const replies = await Promise.all([asked].flat().map((call) => (fault === null ? pass(call) : fault(call, pass))));
    return replies.includes(null) ? null : JSON.stringify(Array.isArray(asked) ? replies : replies[0]);
  };
  const server = await serveHttp(async (incoming, outgoing) => {
    const body = await reply(incoming).catch(() => null);
    if (body === null) outgoing.destroy();
    else outgoing.writeHead(200, { "content-type": "application/json" }).end(body);
  });
  return {
    ...server,
    become: (next) => {
      fault = next;
    },
  };
}

/** Never answers. */
export const away: Fault = async () => null;

/** Disconnects at the next call of the method: before the chain sees it, or after, so that only its answer is lost. */
export const leaveAt = (node: FaultyNode, method: string, heard: "unheard" | "heard"): Promise<number> => {
  const left = Promise.withResolvers<number>();
  node.become(async (call, pass) => {
    if (call.method !== method) return pass(call);
    node.become(away);
    if (heard === "heard") await pass(call);
    left.resolve(Date.now());
    return null;
  });
  return left.promise;
};

const number = (value: unknown): bigint | null =>
  typeof value === "string" && /^0x[0-9a-f]+$/i.test(value) ? BigInt(value) : null;
const quantity = (value: bigint): string => `0x${value.toString(16)}`;

type Filter = { readonly fromBlock?: unknown; readonly toBlock?: unknown };

/** A node that has not seen any block after this one, but still accepts transactions. */
export const standingStillAt =
  (head: bigint): Fault =>
  async (call, pass) => {
    const [first, second, ...more] = call.params ?? [];
    const isAhead = (tag: unknown): boolean => (number(tag) ?? 0n) > head;
    const known = (tag: unknown): unknown => {
      if (tag === "finalized" || tag === "safe") return quantity(head - 2n);
      return number(tag) === null ? quantity(head) : tag;
    };
    switch (call.method) {
      case "eth_blockNumber":
        return { ...reply(call), result: quantity(head) };
      case "eth_getBlockByNumber":
        return isAhead(first) ? { ...reply(call), result: null } : pass({ ...call, params: [known(first), second] });
      case "eth_call":
      case "eth_getCode":
      case "eth_getBalance":
      case "eth_getTransactionCount":
        return isAhead(second) ? unknownBlock(call) : pass({ ...call, params: [first, known(second), ...more] });
      case "eth_estimateGas":
        return pass({ ...call, params: [first, quantity(head)] });
      case "eth_getLogs": {
        const filter = first as Filter;
        if (isAhead(filter.fromBlock)) return { ...reply(call), result: [] };
        const toBlock = isAhead(filter.toBlock) ? quantity(head) : known(filter.toBlock);
        return pass({ ...call, params: [{ ...filter, toBlock }] });
      }
      case "eth_getTransactionReceipt": {
        const found = await pass(call);
        const receipt = found.result as { readonly blockNumber?: unknown } | null;
        return isAhead(receipt?.blockNumber) ? { ...found, result: null } : found;
      }
      default:
        return pass(call);
    }
  };

const reply = ({ id }: Call) => ({ jsonrpc: "2.0", id });
const unknownBlock = (call: Call): Reply => ({ ...reply(call), error: { code: -32000, message: "header not found" } });
