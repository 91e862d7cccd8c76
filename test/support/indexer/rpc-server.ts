import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { type Address, type Hex, toEventSelector, toFunctionSelector } from "viem";
import { NETWORKS } from "../../../api/platform/networks.ts";
import {
  type ChainPlan,
  type GeneratedChain,
  type GeneratedTransfer,
  generateChain,
  SERVICE,
} from "./generated-chain.ts";

// The JSON-RPC methods that Ponder and viem need. Responses are built as text, so that a benchmark does not measure
// this server.

const { chainId, usdc } = NETWORKS["eip155:8453"];
const TRANSFER = toEventSelector("Transfer(address,address,uint256)");
const USED = toEventSelector("AuthorizationUsed(address,bytes32)");
const OWED = toFunctionSelector("owed(address)");
/** The selectors of transferWithAuthorization with (v, r, s), and of transfer. */
const [AUTHORIZED_CALL, PLAIN_CALL] = ["e3ee160e", "a9059cbb"];
/** Blooms of blocks with and without logs. A wrong bloom would make Ponder request missing logs again and again. */
const [EVERYTHING, NOTHING] = [`0x${"f".repeat(512)}`, `0x${"0".repeat(512)}`];

const quantity = (n: number): Hex => `0x${n.toString(16)}`;
const word = (n: number): string => n.toString(16).padStart(64, "0");
const wordOf = (address: Address): string => address.slice(2).padStart(64, "0");
const ZERO = `0x${word(0)}`;
const FIRST_FORK = 0xb000_0000;
const hashOf = (chain: GeneratedChain, block: number): Hex =>
  `0x${(FIRST_FORK + chain.forkOf(block)).toString(16)}${word(block).slice(8)}`;
/** The number of the block with this hash, or NaN if it is no longer in the chain. */
const numberOf = (chain: GeneratedChain, hash: string): number => {
  const block = Number.parseInt(hash.slice(10), 16);
  return hashOf(chain, block) === hash ? block : Number.NaN;
};
const nonceOf = (block: number, { logIndex }: GeneratedTransfer): string => word(block * 4_096 + logIndex);

/** The logs of these kinds, from these payers. */
function logsOf(chain: GeneratedChain, block: number, { wants, payers }: Wanted): readonly string[] {
  const [isTransferWanted, isUsedWanted] = [wants(TRANSFER), wants(USED)];
  const place = `"blockNumber":"${quantity(block)}","blockHash":"${hashOf(chain, block)}","blockTimestamp":"${quantity(chain.timeOf(block))}","removed":false`;
  return chain.transfersOf(block).flatMap((transfer, index) => {
    const { from, to, value, logIndex, transaction, authorized } = transfer;
    if (payers !== null && !payers.has(from)) return [];
    const head = `{"address":"${usdc.address}",${place},"transactionHash":"${transaction}","transactionIndex":"${quantity(index)}"`;
    const used = `${head},"logIndex":"${quantity(logIndex - 1)}","data":"0x","topics":["${USED}","0x${wordOf(from)}","0x${nonceOf(block, transfer)}"]}`;
    const moved = `${head},"logIndex":"${quantity(logIndex)}","data":"0x${word(value)}","topics":["${TRANSFER}","0x${wordOf(from)}","0x${wordOf(to)}"]}`;
    return [...(authorized && isUsedWanted ? [used] : []), ...(isTransferWanted ? [moved] : [])];
  });
}

function inputOf(block: number, transfer: GeneratedTransfer): Hex {
  const { from, to, value, authorized } = transfer;
  const terms = `${wordOf(to)}${word(value)}`;
  if (!authorized) return `0x${PLAIN_CALL}${terms}`;
  const rest = `${word(0)}${word(2 ** 40)}${nonceOf(block, transfer)}${word(27)}${word(1)}${word(1)}`;
  return `0x${AUTHORIZED_CALL}${wordOf(from)}${terms}${rest}`;
}

function transactionOf(
  chain: GeneratedChain,
  block: number,
  [index, transfer]: readonly [number, GeneratedTransfer],
): string {
  const place = `"blockHash":"${hashOf(chain, block)}","blockNumber":"${quantity(block)}","transactionIndex":"${quantity(index)}"`;
  const fees = '"gas":"0x20000","gasPrice":"0x1","maxFeePerGas":"0x1","maxPriorityFeePerGas":"0x1"';
  const signed = `"type":"0x2","chainId":"${quantity(chainId)}","v":"0x0","r":"0x${word(1)}","s":"0x${word(1)}"`;
  return `{"hash":"${transfer.transaction}",${place},"from":"${SERVICE}","to":"${usdc.address}","input":"${inputOf(block, transfer)}","value":"0x0","nonce":"0x1",${fees},${signed}}`;
}

function blockOf(chain: GeneratedChain, block: number, isFull: boolean): string {
  if (!(block >= 0 && block <= chain.head)) return "null";
  const transactions = chain
    .transfersOf(block)
    .map((transfer, index) => (isFull ? transactionOf(chain, block, [index, transfer]) : `"${transfer.transaction}"`));
  const roots = ["mixHash", "stateRoot", "receiptsRoot", "transactionsRoot", "sha3Uncles"]
    .map((name) => `"${name}":"${ZERO}"`)
    .join();
  const gas = '"gasUsed":"0x1","gasLimit":"0x1c9c380","baseFeePerGas":"0x1"';
  const rest = `"nonce":"0x0000000000000000","size":"0x1000","difficulty":"0x0","totalDifficulty":"0x0","extraData":"0x","uncles":[]`;
  return `{"number":"${quantity(block)}","hash":"${hashOf(chain, block)}","parentHash":"${hashOf(chain, Math.max(0, block - 1))}","timestamp":"${quantity(chain.timeOf(block))}","logsBloom":"${transactions.length > 0 ? EVERYTHING : NOTHING}","miner":"${SERVICE}",${gas},${roots},${rest},"transactions":[${transactions.join()}]}`;
}

interface Wanted {
  readonly wants: (topic: Hex) => boolean;
  /** Null for any payer. */
  readonly payers: ReadonlySet<string> | null;
}

interface LogFilter {
  readonly address?: string | readonly string[];
  readonly fromBlock?: string;
  readonly toBlock?: string;
  readonly blockHash?: string;
  readonly topics?: readonly (Hex | readonly Hex[] | null)[];
}

/** Returns whether logs of USDC are wanted. There are no other logs, and a node knows this without reading blocks. */
const isOfUsdc = ({ address }: LogFilter): boolean =>
  address === undefined || [address].flat().some((one) => one.toLowerCase() === usdc.address.toLowerCase());

function findLogs(chain: GeneratedChain, filter: LogFilter): string {
  if (!isOfUsdc(filter)) return "[]";
  const [first, second] = filter.topics ?? [];
  const payers = second ? new Set([second].flat().map((topic) => `0x${topic.slice(26)}`)) : null;
  const wants = (topic: Hex) => !first || first.includes(topic);
  const named = (tag: string | undefined) => (tag === undefined || tag === "latest" ? chain.head : Number(tag));
  const [from, to] = filter.blockHash
    ? [numberOf(chain, filter.blockHash), numberOf(chain, filter.blockHash)]
    : [named(filter.fromBlock), Math.min(chain.head, named(filter.toBlock))];
  const blocks = Array.from({ length: Math.max(0, to - from + 1) }, (_, n) =>
    logsOf(chain, from + n, { wants, payers }),
  );
  return `[${blocks.flat().join()}]`;
}

/** Ponder's finality distance for Base. */
const FINAL_BEHIND = 30;
function numberOfTag(chain: GeneratedChain, tag: unknown): number {
  if (tag === "finalized") return Math.max(0, chain.head - FINAL_BEHIND);
  return tag === "latest" ? chain.head : Number(tag);
}

interface Call {
  readonly id: unknown;
  readonly method: string;
  // Any JSON from a client. Each method parses its own.
  readonly params?: readonly never[];
}

function answer(chain: GeneratedChain, { method, params: [first, second] = [] }: Call): string {
  switch (method) {
    case "eth_chainId":
      return `"${quantity(chainId)}"`;
    case "eth_blockNumber":
      return `"${quantity(chain.head)}"`;
    case "eth_getBlockByNumber":
      return blockOf(chain, numberOfTag(chain, first), second ?? false);
    case "eth_getBlockByHash":
      return blockOf(chain, numberOf(chain, first ?? ""), second ?? false);
    case "eth_getLogs":
      return findLogs(chain, first ?? {});
    case "eth_call":
      return call(first);
    default:
      return "null";
  }
}

/** Every address is an escrow without debts, and not an operator. */
const call = (request: { readonly data?: Hex; readonly input?: Hex } = {}): string =>
  (request.data ?? request.input)?.startsWith(OWED) ? `"${ZERO}"` : "null";

export interface RpcServer {
  readonly url: string;
  readonly close: () => void;
}

interface Serving {
  /** Default: a free port. */
  readonly port?: number;
  /** Called for each method before it is answered. */
  readonly hear?: (method: string, first: number) => void;
}

/** Serves the chain on the loopback interface. */
export async function serveChain(
  chain: GeneratedChain,
  { port = 0, hear = () => undefined }: Serving = {},
): Promise<RpcServer> {
  const server = createServer(async (request, response) => {
    const body: Call | readonly Call[] = JSON.parse(await text(request));
    const one = (call: Call) => {
      hear(call.method, Number(call.params?.[0]));
      return `{"jsonrpc":"2.0","id":${JSON.stringify(call.id)},"result":${answer(chain, call)}}`;
    };
    response.setHeader("content-type", "application/json");
    response.end("method" in body ? one(body) : `[${body.map(one).join()}]`);
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the RPC server has no TCP port");
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${address.port}`, close };
}

/** A generated chain that grows and is reorganized. The block `last` of its plan must be ahead of the head. */
export interface LiveChain extends GeneratedChain {
  readonly grow: (blocks: number) => void;
  /** Replaces this number of the newest blocks and adds one. */
  readonly reorganize: (depth: number) => void;
}

/** @param head its newest block at the start */
export function generateLiveChain(plan: ChainPlan, head: number): LiveChain {
  /** The block from which each reorganization has replaced the chain. */
  const forks: number[] = [];
  const forkOf = (block: number) => forks.findLastIndex((first) => first <= block) + 1;
  let now = head;
  return {
    ...generateChain({ ...plan, forkOf }),
    get head() {
      return now;
    },
    grow(blocks) {
      now += blocks;
    },
    reorganize(depth) {
      forks.push(now - depth + 1);
      now += 1;
    },
  };
}

if (import.meta.main) {
  const { CHAIN_PLAN = "", HEAD } = process.env;
  const chain = generateLiveChain(JSON.parse(CHAIN_PLAN), Number(HEAD));
  const hear = (method: string, blocks: number) => {
    if (method === "bench_grow") chain.grow(blocks);
    if (method === "bench_reorganize") chain.reorganize(blocks);
  };
  const { url } = await serveChain(chain, { hear });
  console.log(`ready ${url}`);
}
