import { toEventSelector } from "viem";
import { type Blocks, type Log, WrongAnswerError } from "../../../indexer/fetch/log-answers.ts";
import { askLogs, quantity } from "../../../indexer/fetch/logs.ts";
import { type Provider, TooMuchError } from "../../../indexer/fetch/provider.ts";
import { MAIN_NETWORK, NETWORKS } from "../../platform/networks.ts";
import type { Mark } from "./lookup-ports.ts";

const USDC = NETWORKS[MAIN_NETWORK].usdc.address;
export const USED_TOPIC = toEventSelector("AuthorizationUsed(address,bytes32)");

/** A mark this near to a block will do. */
const NEAR = 2_000;
/** The newest mark is looked for again after so long. */
const NEWEST_SECONDS = 600;
/** What has been final stays final: a node that is behind, or was away, takes nobody back to older blocks. */
const FINAL_SECONDS = 86_400;
const WIDEN = 4;
const WIDEST = 4_096;

/** Remembers marks. */
export interface MarkStore {
  /** The first or the last of these blocks that has one. */
  between(blocks: Blocks, which: "first" | "last"): Promise<Mark | null>;
  /** The newest that was found to be the last final one within so many seconds. */
  newest(withinSeconds: number): Promise<Mark | null>;
  /**
   * Returns the one that is remembered for this block, which is another one if the chain has changed.
   * @param isNewest whether it is the last final one
   */
  add(mark: Mark, isNewest: boolean): Promise<Mark>;
}

/** Finds final blocks by which a node's answer can be checked. */
export interface Marks {
  /** The newest that is final on every node; null if there is none from `firstBlock` on. */
  final(firstBlock: number, spend: () => Promise<void>): Promise<Mark | null>;
  /** One of these final blocks: near to the last one, or else the nearest. */
  nearLast(blocks: Blocks, spend: () => Promise<void>): Promise<Mark | null>;
  /** One of these final blocks: near to the first one, or else the nearest. */
  nearFirst(blocks: Blocks, spend: () => Promise<void>): Promise<Mark | null>;
}

/** @throws WrongAnswerError if that is no block */
function headerOf(answer: unknown): { readonly block: number; readonly hash: string } {
  const { number, hash } = answer as Readonly<Record<string, unknown>>;
  const block = typeof number === "string" ? Number(number) : Number.NaN;
  if (!Number.isSafeInteger(block) || typeof hash !== "string") throw new WrongAnswerError("the answer is no block");
  return { block, hash };
}

/** A final block that has two hashes: a node is on another chain, or lies. */
class ContradictionError extends Error {
  override readonly name = "ContradictionError";
}

export function createMarks(provider: Provider, store: MarkStore): Marks {
  const markOf = (log: Log): Mark => ({
    block: log.block,
    hash: log.blockHash as Mark["hash"],
    nonce: log.topics[2] as Mark["nonce"],
  });

  /** Every node has the same block there. */
  const confirm = async (mark: Mark, { isNewest, spend }: Finding): Promise<Mark> => {
    const asked = [quantity(mark.block), false];
    const headers = await provider.spending(spend).askAll("eth_getBlockByNumber", asked, headerOf);
    const known = await store.between({ first: mark.block, last: mark.block }, "last");
    const hashes = new Set([mark.hash, ...(known === null ? [] : [known.hash]), ...headers.map(({ hash }) => hash)]);
    if (hashes.size > 1) throw new ContradictionError(`block ${mark.block} is final, but has ${hashes.size} hashes`);
    return store.add(mark, isNewest);
  };

  /** Looks from one end of the blocks to the other, in steps that become wider. */
  const find = async ({ first, last }: Blocks, finding: Finding) => {
    const { from, spend } = finding;
    let [width, most] = [1, WIDEST];
    for (let done = 0; done < last - first + 1; ) {
      const left = last - first + 1 - done;
      const some = Math.min(width, left);
      const start = from === "first" ? first + done : last - done - some + 1;
      try {
        const filter = { address: USDC, topics: [USED_TOPIC] };
        const logs = await askLogs(provider.spending(spend), filter, { first: start, last: start + some - 1 });
        const found = from === "first" ? logs[0] : logs.at(-1);
        if (found !== undefined) return confirm(markOf(found), finding);
        done += some;
        width = Math.min(most, width * WIDEN);
      } catch (error) {
        if (!(error instanceof TooMuchError) || some === 1) throw error;
        width = Math.ceil(some / 2);
        most = Math.min(most, width);
      }
    }
    return null;
  };

  return {
    async final(firstBlock, spend) {
      const recent = await store.newest(NEWEST_SECONDS);
      if (recent !== null && recent.block >= firstBlock) return recent;
      const before = await store.newest(FINAL_SECONDS);
      const finals = await provider.spending(spend).askAll("eth_getBlockByNumber", ["finalized", false], headerOf);
      const last = Math.min(...finals.map(({ block }) => block));
      const first = Math.max(firstBlock, (before?.block ?? 0) + 1);
      const found = await find({ first, last }, { from: "last", isNewest: true, spend });
      if (found !== null || before === null || before.block < firstBlock) return found;
      return store.add(before, true);
    },
    nearLast: async ({ first, last }, spend) =>
      (await store.between({ first: Math.max(first, last - NEAR), last }, "last")) ??
      find({ first, last }, { from: "last", isNewest: false, spend }),
    nearFirst: async ({ first, last }, spend) =>
      (await store.between({ first, last: Math.min(last, first + NEAR) }, "first")) ??
      find({ first, last }, { from: "first", isNewest: false, spend }),
  };
}

interface Finding {
  readonly from: "first" | "last";
  /** Whether the last final one is looked for. */
  readonly isNewest: boolean;
  readonly spend: () => Promise<void>;
}
