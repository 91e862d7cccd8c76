import { MAIN_NETWORK, NETWORKS } from "../../../api/platform/networks.ts";
import type { Address } from "../../../api/platform/wallet.ts";
import { type Call, type Reply, refuse, replyTo, serveNode } from "./rpc.ts";

// A node of a simulated chain that generates each block's logs on request, because no local chain has as many.

const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const USDC = NETWORKS[MAIN_NETWORK].usdc.address.toLowerCase();
const USED = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";

export const addressOf = (n: number): Address => `0x${n.toString(16).padStart(40, "0")}`;
const word = (n: number | bigint) => `0x${n.toString(16).padStart(64, "0")}`;
const hex = (n: number) => `0x${n.toString(16)}`;

export interface Sent {
  readonly from: Address;
  readonly value: number;
}

export interface InflowChain {
  /** The transfers to a wallet in a block. Each block begins with an authorized payment. */
  readonly transfers: (to: Address, block: number) => readonly Sent[];
  /** Wallets that receive transfers. */
  readonly wallets: readonly Address[];
}

/** The provider's behavior, which a test can change at any time. */
export interface InflowProvider {
  /** The last final block. */
  last: number;
  /** The most logs in a response, and the handling of more. */
  most: { readonly logs: number; readonly how: "refused" | "cut" };
  /** Runs before each response. A returned reply replaces the response, and null closes the connection. */
  before: (call: Call) => Promise<Reply | null | undefined>;
}

const placeOf = (block: number) => ({
  ...{ blockNumber: hex(block), blockHash: word(block + 2 ** 40), transactionHash: word(block + 2 ** 41) },
});

export const markOf = (block: number) =>
  ({ block, hash: word(block + 2 ** 40), nonce: word(block) }) as {
    readonly block: number;
    readonly hash: `0x${string}`;
    readonly nonce: `0x${string}`;
  };

/** The transfers to some of the wallets. */
function transfersIn({ transfers, wallets }: InflowChain, block: number, isAsked: (to: string) => boolean) {
  return wallets.flatMap((to, place) =>
    isAsked(word(BigInt(to)))
      ? transfers(to, block).map(({ from, value }, n) => ({
          ...{ ...placeOf(block), address: USDC, logIndex: hex(1 + place * 8_192 + n) },
          ...{ topics: [TRANSFER, word(BigInt(from)), word(BigInt(to))], data: word(value) },
        }))
      : [],
  );
}

const usedIn = (block: number) => ({
  ...{ ...placeOf(block), address: USDC, logIndex: hex(0) },
  ...{ topics: [USED, word(0xbeef), word(block)], data: "0x" },
});

/** Serves the chain and counts the requests. */
export async function startInflowNode(chain: InflowChain, provider: InflowProvider) {
  const asked = { all: 0, logs: 0, refused: 0, returned: 0 };
  const answerLogs = (call: Call) => {
    const [filter] = call.params as [{ fromBlock: string; toBlock: string; topics: (string | string[] | null)[] }];
    const [kinds, , third] = filter.topics.map((topic) => (topic === null ? null : new Set([topic].flat())));
    const isAsked = (topic: string) => third?.has(topic) ?? true;
    const logs: object[] = [];
    const last = Math.min(Number(filter.toBlock), provider.last);
    for (let block = Number(filter.fromBlock); block <= last; block += 1) {
      if (kinds?.has(USED) && isAsked(word(block))) logs.push(usedIn(block));
      if (kinds?.has(TRANSFER)) logs.push(...transfersIn(chain, block, isAsked));
      if (logs.length <= provider.most.logs) continue;
      asked.refused += 1;
      if (provider.most.how === "cut") return replyTo(call, logs.slice(0, provider.most.logs));
      return refuse(call, -32_005, `query returned more than ${provider.most.logs} results`);
    }
    asked.returned += logs.length;
    return replyTo(call, logs);
  };
  const node = await serveNode({
    answer: async (call) => {
      asked.all += 1;
      const instead = await provider.before(call);
      if (instead !== undefined) return instead;
      const [first] = call.params as [string];
      const block = first === "finalized" ? provider.last : Number(first);
      switch (call.method) {
        case "eth_getLogs":
          asked.logs += 1;
          return answerLogs(call);
        case "eth_getBlockReceipts":
          return replyTo(
            call,
            block > provider.last
              ? null
              : [{ ...placeOf(block), logs: [usedIn(block), ...transfersIn(chain, block, () => true)] }],
          );
        default: {
          const { blockNumber: number, blockHash: hash } = placeOf(block);
          return replyTo(call, block > provider.last ? null : { number, hash, parentHash: hash, timestamp: number });
        }
      }
    },
  });
  return { url: node.url, asked, stop: () => node.stop() };
}
