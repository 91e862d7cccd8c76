import { encodeEventTopics, type Hex, numberToHex, type PublicClient, parseAbi } from "viem";
import type { Token } from "../../../api/platform/chain/authorizations.ts";
import { createFinality } from "../../../api/platform/chain/chain.ts";
import { createLogSearch } from "../../../api/platform/chain/log-search.ts";
import type { LogReader, MinedLog } from "../../../api/platform/chain/logs.ts";
import type { Expected } from "../../../api/platform/chain/view.ts";
import { usdcEventsAbi } from "../../../contracts/abi.ts";
import { type Branch, type Fate, type NodeView, PAYEE, type Scene, timeOf, turnsOf } from "./branching-chain.ts";

// What the payment gate reads of nodes that take turns, call by call.

const USDC = `0x${"cc".repeat(20)}` as const;
const PAYER = `0x${"11".repeat(20)}` as const;
const NONCE = `0x${"77".repeat(32)}` as const;
const SECONDS_A_BLOCK = 2;

/** A payment to us that closes at the time of block `end`. */
export const expectedUntil = (end: number, more: Partial<Expected> = {}): Expected => ({
  ...{ payer: PAYER, nonce: NONCE, payTo: PAYEE, value: 1n, fromBlock: 0 },
  ...{ validAfter: 0n, validBefore: timeOf(end) },
  ...more,
});

const topicsOf = (eventName: "AuthorizationUsed" | "Transfer", args: object) =>
  encodeEventTopics({ abi: usdcEventsAbi, eventName, args } as never) as [Hex, ...Hex[]];
const USED = topicsOf("AuthorizationUsed", { authorizer: PAYER, nonce: NONCE });
const TRANSFERRED = topicsOf("Transfer", { from: PAYER, to: PAYEE });
const CANCELED = encodeEventTopics({
  abi: parseAbi(["event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)"]),
  args: { authorizer: PAYER, nonce: NONCE },
}) as [Hex, ...Hex[]];

/** A process of its own: it remembers what it has read. `calls` counts all that it has asked, `ms` is how long it has run. */
export function tokenOf(branches: readonly Branch[], scene: Scene) {
  const chain = turnsOf(branches, scene);
  const counted = { calls: 0, ms: 0 };
  const asked = (): NodeView => {
    counted.calls++;
    return chain.next();
  };
  const logsOf = (view: NodeView, fate: Fate): MinedLog[] => {
    const { hash: blockHash } = chain.block(fate.block, view);
    const mined = (topics: [Hex, ...Hex[]], logIndex: number) => ({
      ...{ address: USDC, topics, logIndex, blockHash, blockNumber: BigInt(fate.block), removed: false },
      ...{ data: numberToHex(1n, { size: 32 }), transactionHash: chain.transactionOf(fate), transactionIndex: 0 },
      blockTimestamp: undefined,
    });
    return fate.isCanceled ? [mined(CANCELED, 0)] : [mined(USED, 0), mined(TRANSFERRED, 1)];
  };
  const asBlock = ({ number, hash, time }: ReturnType<typeof chain.block>) => ({
    number: BigInt(number),
    hash,
    timestamp: time,
  });
  const client = {
    async readContract() {
      const { used, at } = chain.stateOf(asked());
      return [used, at.number, at.time].map((result) => ({ returnData: numberToHex(BigInt(result), { size: 32 }) }));
    },
    async getTransactionReceipt({ hash }: { hash: Hex }) {
      const view = asked();
      const fate = chain.shownBy(view);
      if (fate === null || chain.transactionOf(fate) !== hash) throw new Error("no such receipt");
      return { blockHash: chain.block(fate.block, view).hash, logs: logsOf(view, fate) };
    },
    async getBlock({ blockNumber }: { blockNumber?: bigint }) {
      const view = asked();
      if (blockNumber === undefined) return asBlock(chain.finalOf(view));
      if (!view.isKept(Number(blockNumber))) throw new Error("no such block");
      return asBlock(chain.block(Number(blockNumber), view));
    },
  } as unknown as PublicClient;
  const width = () => 100_000n;
  const logs = {
    width,
    async page(_filter, read, { allowance }) {
      if (allowance.left() === 0) return null;
      allowance.spend();
      const view = asked();
      const fate = chain.shownBy(view);
      const isRead = fate !== null && fate.block >= read.from && fate.block <= read.to;
      return { logs: isRead ? logsOf(view, fate) : [], read };
    },
  } as LogReader;
  const now = () => Number(timeOf(scene.head)) * 1_000 + counted.ms;
  const search = createLogSearch({ logs, blockSeconds: SECONDS_A_BLOCK, pause: async () => {}, now });
  const finality = createFinality(client, now);
  const token: Token = { client, usdc: USDC, blockSeconds: SECONDS_A_BLOCK, finality, search, width };
  return { token, counted };
}
