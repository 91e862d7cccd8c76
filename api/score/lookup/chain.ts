import { numberToHex } from "viem";
import {
  askLogs,
  type Blocks,
  headerOf,
  type Log,
  paramsOf,
  readLogAnswer,
  TRANSFER_TOPIC,
  USED_TOPIC,
  WrongAnswerError,
} from "../../platform/chain/log-answers.ts";
import { createWidth } from "../../platform/chain/logs.ts";
import { type Provider, TooMuchError } from "../../platform/chain/provider.ts";
import { MAIN_NETWORK, NETWORKS } from "../../platform/networks.ts";
import type { Address } from "../../platform/wallet.ts";
import {
  addInflows,
  type Basis,
  type Inflow,
  type KnownBlock,
  type Progress,
  type ReadPlan,
  type Spend,
} from "./inflows.ts";
import type { MarkStore } from "./store.ts";

/** A mark within this many blocks is close enough. */
const NEAR = 2_000;
/** The newest mark is looked up again after this time. */
const NEWEST_SECONDS = 600;
/** A final block stays final, so a node that lags or was down must not lead back to older blocks. */
const FINAL_SECONDS = 86_400;
const WIDEST = 4_096;

class ContradictionError extends Error {
  override readonly name = "ContradictionError";
}

/** Creates the search for final blocks against which a node's answer can be checked. */
function createMarks(provider: Provider, store: MarkStore) {
  const markOf = (log: Log): KnownBlock => ({
    block: log.block,
    hash: log.blockHash as KnownBlock["hash"],
    nonce: log.topics[2] as KnownBlock["nonce"],
  });

  /** Checks that every node has the same block. */
  const confirm = async (mark: KnownBlock, { isNewest, spend }: BlockSearch): Promise<KnownBlock> => {
    const asked = [numberToHex(mark.block), false];
    const headers = await provider.spending(spend).askAll("eth_getBlockByNumber", asked, headerOf);
    const known = await store.between({ first: mark.block, last: mark.block }, "last");
    const hashes = new Set([mark.hash, ...(known === null ? [] : [known.hash]), ...headers.map(({ hash }) => hash)]);
    if (hashes.size > 1) throw new ContradictionError(`block ${mark.block} is final, but has ${hashes.size} hashes`);
    return store.add(mark, isNewest);
  };

  /** Searches from one end of the blocks to the other, in increasing steps. */
  const find = async ({ first, last }: Blocks, finding: BlockSearch) => {
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
    /** Returns the newest mark that is final on every node, or null if there is none from `firstBlock` on. */
    async final(firstBlock: number, spend: Spend): Promise<KnownBlock | null> {
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
    /** Returns a mark in these final blocks near the last one, or else the nearest. */
    nearLast: async ({ first, last }: Blocks, spend: Spend) =>
      (await store.between({ first: Math.max(first, last - NEAR), last }, "last")) ??
      find({ first, last }, { from: "last", isNewest: false, spend }),
    /** Returns a mark in these final blocks near the first one, or else the nearest. */
    nearFirst: async ({ first, last }: Blocks, spend: Spend) =>
      (await store.between({ first, last: Math.min(last, first + NEAR) }, "first")) ??
      find({ first, last }, { from: "first", isNewest: false, spend }),
  };
}

interface BlockSearch {
  readonly from: "first" | "last";
  /** Whether the search is for the last final mark. */
  readonly isNewest: boolean;
  readonly spend: Spend;
}

const USDC = NETWORKS[MAIN_NETWORK].usdc.address;
const ZERO_ADDRESS: Address = "0x0000000000000000000000000000000000000000";
/** Per request. */
const MOST_WALLETS = 100;
/**
 * After an answer with fewer logs, the next request covers four times as many blocks, so that one crowded day does not
 * slow down all others. No provider truncates such an answer without an error.
 */
const FEW_LOGS = 1_000;
/** Providers truncate answers at multiples of this number. */
const CUT_AT = 500;
/** The most blocks that are read in full because they have more transfers to one wallet than a provider returns. */
const MOST_WHOLE_BLOCKS = 8;
const WIDEN = 4;

const topicOf = (address: Address): string => `0x${address.slice(2).padStart(64, "0")}`;
const addressOf = (topic: string | undefined): Address => `0x${(topic ?? "").slice(26)}`;

interface InflowReaderParts {
  readonly provider: Provider;
  readonly marks: MarkStore;
}

/** Wallets that were read up to the same mark. */
interface Group {
  readonly wallets: readonly Progress[];
  /** Reading continues after this mark, or starts at the first block if null. */
  readonly after: KnownBlock | null;
}

export type InflowReader = ReturnType<typeof createInflowReader>;

/**
 * Reads transfers to many wallets in one call of `eth_getLogs`. Each request also asks for the authorizations of two
 * marks, one at either end of its blocks. An answer that lacks them, or has another block's hash, is rejected, because
 * it comes from a node that lags, has pruned, or is on another chain.
 */
export function createInflowReader({ provider, marks: store }: InflowReaderParts) {
  const marks = createMarks(provider, store);
  const widest = createWidth(Number.POSITIVE_INFINITY);

  const ask = async (wallets: readonly Address[], { from, bottom, top }: Span, spend: Spend) => {
    const topics = [[TRANSFER_TOPIC, USED_TOPIC], null, [...wallets.map(topicOf), bottom.nonce, top.nonce]];
    const filter = { address: USDC, topics };
    const blocks = { first: from, last: top.block };
    const read = (answer: unknown) => {
      const logs = readLogAnswer(answer, filter, blocks);
      requireMarks(logs, [bottom, top]);
      return logs;
    };
    const logs = await provider.spending(spend).ask("eth_getLogs", paramsOf(filter, blocks), read);
    return logs.filter((log) => log.topics[0] === TRANSFER_TOPIC);
  };

  /** Reads transfers to one wallet from all receipts of blocks that have more of them than a provider returns. */
  const readWhole = async (wallet: Address, { first, top }: Blocks & { readonly top: KnownBlock }, spend: Spend) => {
    const filter = { address: USDC, topics: [TRANSFER_TOPIC, null, topicOf(wallet)] };
    const found: Log[] = [];
    for (let block = first; block <= top.block; block += 1) {
      const read = (answer: unknown) =>
        readLogAnswer(logsOfReceipts(answer, block, { top, topic: topicOf(wallet) }), filter, {
          first: block,
          last: block,
        });
      found.push(...(await provider.spending(spend).ask("eth_getBlockReceipts", [numberToHex(block)], read)));
    }
    return found;
  };

  /** Returns the next span to request, of at most `most` blocks unless there are too few marks for that. */
  const spanFrom = async (at: KnownBlock | null, most: number, { basis, end, spend }: Reading): Promise<Span> => {
    const from = at?.block ?? basis.firstBlock;
    const isWhole = end.block - from + 1 <= most;
    const first = (at?.block ?? from - 1) + 1;
    const last = from + most - 1;
    const top = isWhole
      ? end
      : ((await marks.nearLast({ first, last }, spend)) ??
        (await marks.nearFirst({ first: Math.max(first, last), last: end.block }, spend)));
    const bottom = at ?? (top && (await marks.nearFirst({ first: from, last: top.block }, spend)));
    if (top === null || bottom === null) throw new Error(`no authorized payment marks blocks ${from} to ${end.block}`);
    return { from, bottom, top };
  };

  /** Reads one group to the end, in as few requests as the limits allow. */
  const readGroup = async (basis: Basis, { wallets, after }: Group, plan: ReadPlan): Promise<void> => {
    let [group, at, width] = [wallets, after, Number.POSITIVE_INFINITY];
    const { end, spend } = plan;
    const take = async (logs: readonly Log[], top: KnownBlock) => {
      group = advance(group, logs, { basis, after: at?.block ?? -1, top });
      await plan.save(group);
      group = group.filter(({ inflows }) => inflows.fullAt === null);
      at = top;
    };
    while (group.length > 0 && (at?.block ?? -1) < end.block) {
      const wide = Math.max(1, Math.min(width, widest.current()));
      const span = await spanFrom(at, wide, { basis, end, spend });
      const blocks = span.top.block - span.from + 1;
      try {
        const logs = await ask(
          group.map(({ wallet }) => wallet),
          span,
          spend,
        );
        await take(logs, span.top);
        if (logs.length < FEW_LOGS) width *= WIDEN;
      } catch (error) {
        if (!(error instanceof TooMuchError)) throw error;
        const isNarrowest = blocks === 1 || blocks > wide;
        const [one] = group;
        if (error.isRange && !isNarrowest) widest.shrink(Math.max(1, Math.floor(blocks / 2)));
        else if (error.isRange || one === undefined) throw error;
        else if (group.length > 1) {
          const half = group.length >> 1;
          await readGroup(basis, { wallets: group.slice(0, half), after: at }, plan);
          group = group.slice(half);
        } else if (!isNarrowest) width = Math.floor(blocks / 2);
        else if (blocks <= MOST_WHOLE_BLOCKS)
          await take(await readWhole(one.wallet, wholeOf(span, at), spend), span.top);
        // There are too few marks for a smaller request.
        else throw error;
      }
    }
  };

  return {
    /** Returns the newest final block to look up to, or null while no authorized payment is final. */
    final: ({ firstBlock }: Basis, spend: Spend) => marks.final(firstBlock, spend),
    /** Reads up to the plan's `end` and passes on every step. */
    async read(basis: Basis, plan: ReadPlan): Promise<void> {
      const open = plan.from.filter(({ inflows }) => inflows.fullAt === null);
      for (const wallets of Map.groupBy(open, ({ through }) => through?.block ?? null).values())
        for (let first = 0; first < wallets.length; first += MOST_WALLETS)
          await readGroup(
            basis,
            { wallets: wallets.slice(first, first + MOST_WALLETS), after: wallets[0]?.through ?? null },
            plan,
          );
    },
  };
}

/** The range of one request: from the mark `bottom`, or from an earlier block, to the mark `top`. */
interface Span {
  readonly from: number;
  readonly bottom: KnownBlock;
  readonly top: KnownBlock;
}

interface Reading {
  readonly basis: Basis;
  readonly end: KnownBlock;
  readonly spend: Spend;
}

/** Returns the blocks of a span that have not been read yet. */
const wholeOf = ({ from, top }: Span, at: KnownBlock | null): Blocks & { readonly top: KnownBlock } => ({
  ...{ first: at === null ? from : at.block + 1, last: top.block },
  top,
});

/**
 * Checks that an answer contains the marks. If it does not, the node lacks these blocks, unless the answer is long
 * enough to have been truncated. A truncated answer can also end right after a mark, with exactly as many logs as
 * providers return.
 * @throws WrongAnswerError if another node must answer, TooMuchError if a smaller request is needed
 */
function requireMarks(logs: readonly Log[], marks: readonly KnownBlock[]): void {
  const isLong = logs.length >= FEW_LOGS;
  if (isLong && logs.length % CUT_AT === 0) throw new TooMuchError(`an answer ends after ${logs.length} logs`, false);
  for (const { block, hash, nonce } of marks) {
    const shown = logs.find((log) => log.topics[0] === USED_TOPIC && log.topics[2] === nonce && log.block === block);
    if (shown === undefined && isLong) throw new TooMuchError(`${logs.length} logs lack block ${block}`, false);
    if (shown === undefined) throw new WrongAnswerError(`the answer lacks block ${block}`);
    if (shown.blockHash !== hash) throw new WrongAnswerError(`block ${block} is final, but has another hash`);
  }
}

/** A receipt or a log that has not been validated. */
type RawJson = Readonly<Record<string, unknown>>;

/**
 * Returns the logs in all receipts of a block that match the request. A node that does not have the block returns no
 * receipts.
 */
function logsOfReceipts(
  answer: unknown,
  block: number,
  { top, topic }: { readonly top: KnownBlock; readonly topic: string },
) {
  const receipts = Array.isArray(answer) ? (answer as readonly RawJson[]) : [];
  const [hash, ...others] = new Set(receipts.map(({ blockHash }) => blockHash));
  const isOne = typeof hash === "string" && others.length === 0 && (block < top.block || hash === top.hash);
  if (!isOne || receipts.some(({ blockNumber }) => Number(blockNumber) !== block))
    throw new WrongAnswerError(`the answer is not block ${block}'s receipts`);
  const isAsked = ({ address, topics }: RawJson) =>
    String(address).toLowerCase() === USDC.toLowerCase() &&
    Array.isArray(topics) &&
    topics[0] === TRANSFER_TOPIC &&
    topics[2] === topic;
  return receipts.flatMap(({ logs }) => (logs as readonly RawJson[]).filter(isAsked));
}

interface Step {
  readonly basis: Basis;
  /** Transfers up to this block have already been counted. */
  readonly after: number;
  readonly top: KnownBlock;
}

function advance(group: readonly Progress[], logs: readonly Log[], { basis, after, top }: Step): readonly Progress[] {
  const byWallet = Map.groupBy(
    logs.filter((log) => log.block > after),
    (log) => addressOf(log.topics[2]),
  );
  const inflowOf = (log: Log): Inflow => ({
    block: log.block,
    from: addressOf(log.topics[1]),
    value: BigInt(log.data),
  });
  return group.map(({ wallet, inflows }) => {
    const ignored = new Set([...basis.ignored, ZERO_ADDRESS, wallet]);
    const added = (byWallet.get(wallet) ?? []).map(inflowOf);
    return { wallet, through: top, inflows: addInflows(inflows, added, ignored) };
  });
}
