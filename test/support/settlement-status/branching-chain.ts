import type { HashedBlock } from "../../../api/platform/chain/nodes.ts";
import type { AuthorizationReader, NonceEnd, NonceReading } from "../../../api/settlement-status/reading.ts";

// A chain like Base that reorganizes above its final block, as nodes show it that lag, stand still or forget.

const SECONDS_A_BLOCK = 2;
const START = 1_700_000_000;
/** A block is final after 13 minutes at the earliest. */
export const FINAL_AFTER = 450;
/** Of a node that has pruned what is older. */
const KEPT_BLOCKS = 64;
/** So far after `validBefore` the logs are searched. */
const SEARCHED_BLOCKS = FINAL_AFTER;
/** How old the state is that a stale node reports as that of its newest block. */
const STALE_BLOCKS = 900;

export const timeOf = (block: number): bigint => BigInt(START + block * SECONDS_A_BLOCK);

/** The first block that is not before this time. */
const blockAt = (time: bigint): number => Math.ceil((Number(time) - START) / SECONDS_A_BLOCK);

/** How the nonce ends on a branch. */
export interface Fate {
  readonly block: number;
  readonly isCanceled: boolean;
}

/** From the moment when the head was at `since`, the chain is this one after the block `fork`. */
export interface Branch {
  readonly since: number;
  readonly fork: number;
  /** Null if nothing on the chain uses the nonce. */
  readonly fate: Fate | null;
}

/**
 * Blocks that a node is behind; `pruned`: it keeps up and has only new blocks; `stale`: it keeps up, its state does not;
 * `left`: it goes on with the branch that the chain has left.
 */
export type NodeKind = number | "pruned" | "stale" | "left";

export interface Scene {
  head: number;
  /** They answer in this order, and then again; another list begins with its first. */
  nodes: readonly NodeKind[];
  /** Whether nodes that lag have heard of the last reorganization all the same. */
  areOnBranch: boolean;
}

export const PAYEE = `0x${"22".repeat(20)}` as const;
const word = (number: number) => `0x${number.toString(16).padStart(64, "0")}` as const;

/** What the node shows whose turn it is. */
export interface NodeView {
  readonly node: NodeKind;
  readonly head: number;
  /** The place of the branch that it is on. */
  readonly branch: number;
  /** Whether it has this block, and what is in it. */
  readonly isKept: (block: number) => boolean;
}

/** Nodes that take turns. What a lagging one shows is what the chain was then, on the branch that it was on. */
export function turnsOf(branches: readonly Branch[], scene: Scene) {
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
  const fateAt = ({ head, branch }: Pick<NodeView, "head" | "branch">): Fate | null => {
    const fate = branches[branch]?.fate ?? null;
    return fate !== null && fate.block <= head ? fate : null;
  };
  return {
    next,
    block,
    transactionOf: ({ isCanceled }: Fate) => word(isCanceled ? 77 : 78),
    /** Of its newest block. */
    stateOf: ({ node, head, branch }: NodeView): NonceReading => {
      const fate = fateAt({ head: node === "stale" ? head - STALE_BLOCKS : head, branch });
      return { used: fate !== null, at: block(head, { branch }) };
    },
    isUsedBy: (number: number, { node, branch }: NodeView): boolean =>
      fateAt({ head: node === "stale" ? number - STALE_BLOCKS : number, branch }) !== null,
    /** The end of the nonce, as far as the node has it. */
    shownBy: (view: NodeView): Fate | null => {
      const fate = fateAt(view);
      return fate !== null && view.isKept(fate.block) ? fate : null;
    },
    finalOf: (view: NodeView): HashedBlock => block(Math.max(0, view.head - FINAL_AFTER), view),
  };
}

/** What the oracle reads of these nodes. */
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
      const fate = shownBy(view);
      if (fate === null || transactionOf(fate) !== transaction) return null;
      const transfer = fate.isCanceled ? null : { to: PAYEE, value: 1n };
      return { transaction, block: block(fate.block, view), transfer };
    },
    async search(_name, { before }) {
      const last = before === null ? Number.POSITIVE_INFINITY : blockAt(before) + SEARCHED_BLOCKS;
      for (const _ of scene.nodes) {
        const fate = shownBy(next());
        if (fate !== null && fate.block <= last) return { transaction: transactionOf(fate) };
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
