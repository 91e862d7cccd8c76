import fc from "fast-check";
import { encodeEventTopics, type Hex, numberToHex, type PublicClient, parseAbi } from "viem";
import type { Token } from "../../../api/platform/chain/authorizations.ts";
import { createFinality } from "../../../api/platform/chain/chain.ts";
import { createLogSearch } from "../../../api/platform/chain/log-search.ts";
import type { LogReader, MinedLog } from "../../../api/platform/chain/logs.ts";
import type { HashedBlock } from "../../../api/platform/chain/nodes.ts";
import type { Expected } from "../../../api/platform/chain/view.ts";
import type {
  AuthorizationReader,
  FactsKept,
  FinalFacts,
  NonceEnd,
  NonceReading,
} from "../../../api/settlement-status/reading.ts";
import { usdcEventsAbi } from "../../../contracts/abi.ts";

// A chain like Base that reorganizes above its final block, seen through nodes that lag, stop, or forget.

const SECONDS_A_BLOCK = 2;
const START = 1_700_000_000;
/** A block is final after 15 minutes. */
export const FINAL_AFTER = 450;
/** The blocks of a node that prunes. */
const KEPT_BLOCKS = 64;
/** The blocks after `validBefore` whose logs are searched. */
const SEARCHED_BLOCKS = FINAL_AFTER;
/** The age of the state that a stale node reports as its newest block's. */
const STALE_BLOCKS = 900;

export const timeOf = (block: number): bigint => BigInt(START + block * SECONDS_A_BLOCK);

/** The first block at or after this time. */
const blockAt = (time: bigint): number => Math.ceil((Number(time) - START) / SECONDS_A_BLOCK);

/** The end of the nonce on a branch. */
export interface Outcome {
  readonly block: number;
  readonly isCanceled: boolean;
}

/** From the moment when the head was at `since`, the chain is this one after the block `fork`. */
export interface Branch {
  readonly since: number;
  readonly fork: number;
  /** Null if no transaction on the chain uses the nonce. */
  readonly outcome: Outcome | null;
}

/**
 * The number of blocks that a node is behind, or a kind: `pruned` is current and has only recent blocks, `stale` is
 * current except for its state, and `left` continues on the branch that the chain has left.
 */
export type NodeKind = number | "pruned" | "stale" | "left";

export interface Scene {
  head: number;
  /** Nodes take turns in this order. Another list starts with its first node. */
  nodes: readonly NodeKind[];
  /** Whether lagging nodes are on the newest branch nevertheless. */
  areOnBranch: boolean;
}

export const PAYEE = `0x${"22".repeat(20)}` as const;
const word = (number: number) => `0x${number.toString(16).padStart(64, "0")}` as const;

/** The view of the node whose turn it is. */
export interface NodeView {
  readonly node: NodeKind;
  readonly head: number;
  /** The index of its branch. */
  readonly branch: number;
  /** Returns whether it has this block with its contents. */
  readonly isKept: (block: number) => boolean;
}

/** Nodes that take turns. A lagging node shows the earlier chain on the branch of that time. */
function turnsOf(branches: readonly Branch[], scene: Scene) {
  let turn = 0;
  let answering = scene.nodes;
  const branchAt = (head: number) => branches.findLastIndex(({ since }) => since <= head);
  const next = (): NodeView => {
    if (answering !== scene.nodes) {
      answering = scene.nodes;
      turn = 0;
    }
    const node = scene.nodes[turn++ % scene.nodes.length] ?? 0;
    const lagging = Math.max(0, scene.head - (typeof node === "number" ? node : 0));
    const head = scene.areOnBranch && branchAt(lagging) !== branchAt(scene.head) ? scene.head : lagging;
    const branch = Math.max(0, branchAt(head) - (node === "left" ? 1 : 0));
    const isKept = (block: number) => block <= head && (node !== "pruned" || block > head - KEPT_BLOCKS);
    return { node, head, branch, isKept };
  };
  const block = (number: number, view: Pick<NodeView, "branch">): HashedBlock => {
    let { branch } = view;
    while (branch > 0 && number <= (branches[branch]?.fork ?? 0)) branch--;
    return { number, time: timeOf(number), hash: word(branch * 1_000_000 + number) };
  };
  const outcomeAt = ({ head, branch }: Pick<NodeView, "head" | "branch">): Outcome | null => {
    const outcome = branches[branch]?.outcome ?? null;
    return outcome !== null && outcome.block <= head ? outcome : null;
  };
  return {
    next,
    block,
    transactionOf: ({ isCanceled }: Outcome) => word(isCanceled ? 77 : 78),
    /** The state of its newest block. */
    stateOf: ({ node, head, branch }: NodeView): NonceReading => {
      const outcome = outcomeAt({ head: node === "stale" ? head - STALE_BLOCKS : head, branch });
      return { used: outcome !== null, at: block(head, { branch }) };
    },
    isUsedBy: (number: number, { node, branch }: NodeView): boolean =>
      outcomeAt({ head: node === "stale" ? number - STALE_BLOCKS : number, branch }) !== null,
    /** The end of the nonce, if the node has it. */
    shownBy: (view: NodeView): Outcome | null => {
      const outcome = outcomeAt(view);
      return outcome !== null && view.isKept(outcome.block) ? outcome : null;
    },
    finalOf: (view: NodeView): HashedBlock => block(Math.max(0, view.head - FINAL_AFTER), view),
  };
}

/** The oracle's readings of these nodes. */
export function nodesOf(branches: readonly Branch[], scene: Scene): AuthorizationReader {
  const { next, block, transactionOf, stateOf, isUsedBy, shownBy, finalOf } = turnsOf(branches, scene);
  const state = async () => stateOf(next());
  return {
    state,
    stateAgain: state,
    async final() {
      const [one, two] = [next(), next()];
      return finalOf(one.head < two.head ? one : two);
    },
    async endIn(transaction): Promise<NonceEnd | null> {
      const view = next();
      const outcome = shownBy(view);
      if (outcome === null || transactionOf(outcome) !== transaction) return null;
      const transfer = outcome.isCanceled ? null : { to: PAYEE, value: 1n };
      return { transaction, block: block(outcome.block, view), transfer };
    },
    async search(_name, { before }) {
      const last = before === null ? Number.POSITIVE_INFINITY : blockAt(before) + SEARCHED_BLOCKS;
      for (const _ of scene.nodes) {
        const outcome = shownBy(next());
        if (outcome !== null && outcome.block <= last) return { transaction: transactionOf(outcome) };
      }
      return "unfinished";
    },
    async blockSince(time) {
      const view = next();
      if (!view.isKept(blockAt(time))) throw new Error("pruned");
      return block(blockAt(time), view);
    },
    async usedBy(_name, number) {
      const view = next();
      if (!view.isKept(number)) throw new Error("pruned");
      return isUsedBy(number, view);
    },
    async hashAt(number) {
      const view = next();
      return view.isKept(number) ? block(number, view).hash : null;
    },
    verifyContractSignature: async () => false,
    isDeployed: async () => false,
  };
}

// The payment gate's readings of nodes that take turns, call by call.

const USDC = `0x${"cc".repeat(20)}` as const;
const PAYER = `0x${"11".repeat(20)}` as const;
const NONCE = `0x${"77".repeat(32)}` as const;

/** A payment to us whose window closes at the time of block `end`. */
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

/** A separate process that remembers its readings. `calls` counts all of its calls, and `ms` is its running time. */
export function tokenOf(branches: readonly Branch[], scene: Scene) {
  const chain = turnsOf(branches, scene);
  const counted = { calls: 0, ms: 0 };
  const asked = (): NodeView => {
    counted.calls++;
    return chain.next();
  };
  const logsOf = (view: NodeView, outcome: Outcome): MinedLog[] => {
    const { hash: blockHash } = chain.block(outcome.block, view);
    const mined = (topics: [Hex, ...Hex[]], logIndex: number) => ({
      ...{ address: USDC, topics, logIndex, blockHash, blockNumber: BigInt(outcome.block), removed: false },
      ...{ data: numberToHex(1n, { size: 32 }), transactionHash: chain.transactionOf(outcome), transactionIndex: 0 },
      blockTimestamp: undefined,
    });
    return outcome.isCanceled ? [mined(CANCELED, 0)] : [mined(USED, 0), mined(TRANSFERRED, 1)];
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
      const outcome = chain.shownBy(view);
      if (outcome === null || chain.transactionOf(outcome) !== hash) throw new Error("no such receipt");
      return { blockHash: chain.block(outcome.block, view).hash, logs: logsOf(view, outcome) };
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
      const outcome = chain.shownBy(view);
      const isRead = outcome !== null && outcome.block >= read.from && outcome.block <= read.to;
      return { logs: isRead ? logsOf(view, outcome) : [], read };
    },
  } as LogReader;
  const now = () => Number(timeOf(scene.head)) * 1_000 + counted.ms;
  const search = createLogSearch({ logs, blockSeconds: SECONDS_A_BLOCK, pause: async () => {}, now });
  const finality = createFinality(client, now);
  const token: Token = { client, usdc: USDC, blockSeconds: SECONDS_A_BLOCK, finality, search, width };
  return { token, counted };
}

/** The facts that processes share in the database. */
export function factsInMemory(): FinalFacts {
  let end: NonceEnd | null = null;
  const unused = new Map<bigint, HashedBlock>();
  return {
    get: async (_, validBefore): Promise<FactsKept> => ({
      end,
      unusedBefore: validBefore === null ? null : (unused.get(validBefore) ?? null),
    }),
    async putEnd(_, found) {
      end ??= found;
    },
    async putUnused(_, validBefore, block) {
      const kept = unused.get(validBefore) ?? block;
      unused.set(validBefore, kept);
      return kept;
    },
  };
}

/** A store that keeps no facts, so each process must find them. */
export const NO_FACTS: FinalFacts = {
  get: async () => ({ end: null, unusedBefore: null }),
  putEnd: async () => {},
  putUnused: async (_name, _validBefore, block) => block,
};

// Chains that reorganize above their final block, with the order of nodes that are queried.

export interface Moment {
  readonly grown: number;
  readonly nodes: readonly NodeKind[];
}

export interface World {
  readonly branches: readonly Branch[];
  /** The block at whose time the authorization ends. */
  readonly end: number;
  readonly moments: readonly Moment[];
}

const outcome: fc.Arbitrary<Outcome | null> = fc.option(
  fc.record({ block: fc.integer({ min: 1, max: 700 }), isCanceled: fc.boolean() }),
  { nil: null, freq: 6 },
);
const reorganization = fc.record({
  since: fc.integer({ min: 20, max: 1_100 }),
  depth: fc.integer({ min: 1, max: FINAL_AFTER - 1 }),
  outcome,
});
export const MOST_BEHIND = 900;
const lag: fc.Arbitrary<NodeKind> = fc.constantFrom(0, 1, 30, 180, 299, 460, MOST_BEHIND);
/** Two nodes of any kind and a current one, in any order. */
export const threeNodes: fc.Arbitrary<readonly NodeKind[]> = (() => {
  const other = fc.oneof(
    { arbitrary: lag, weight: 5 },
    { arbitrary: fc.constantFrom<NodeKind>("pruned", "stale", "left"), weight: 2 },
  );
  return fc.tuple(other, other, fc.constant(0)).chain((three) => fc.shuffledSubarray(three, { minLength: 3 }));
})();
const grown = fc.oneof(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 450 }));

export const worldWith = (nodes: fc.Arbitrary<readonly NodeKind[]>): fc.Arbitrary<World> =>
  fc
    .record({
      first: outcome,
      more: fc.array(reorganization, { maxLength: 3 }),
      end: fc.integer({ min: 1, max: 700 }),
      moments: fc.array(fc.record({ grown, nodes }), { minLength: 2, maxLength: 8 }),
    })
    .map(({ first, more, ...given }) => ({ ...given, branches: branchesOf(first, more) }));

/** Only blocks that are not final yet can be replaced. */
function branchesOf(
  first: Outcome | null,
  more: readonly { readonly since: number; readonly depth: number; readonly outcome: Outcome | null }[],
): readonly Branch[] {
  const branches: Branch[] = [{ since: 0, fork: 0, outcome: first }];
  for (const { since, depth, outcome: wanted } of more.toSorted((one, two) => one.since - two.since)) {
    const before = branches.at(-1)?.outcome ?? null;
    const fork = Math.max(0, since - depth);
    const isKept = before !== null && before.block <= fork;
    const isPossible = wanted === null || wanted.block > fork;
    branches.push({ since, fork, outcome: isKept ? before : isPossible ? wanted : null });
  }
  return branches;
}
