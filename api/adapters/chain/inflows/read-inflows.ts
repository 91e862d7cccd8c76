import { type Log, readLogAnswer, WrongAnswerError } from "../../../../indexer/fetch/log-answers.ts";
import { quantity } from "../../../../indexer/fetch/logs.ts";
import { type Provider, TooMuchError } from "../../../../indexer/fetch/provider.ts";
import { TRANSFER_TOPIC } from "../../../../indexer/ledger.ts";
import { MAIN_NETWORK, NETWORKS } from "../../../kernel/networks.ts";
import type { Address } from "../../../kernel/wallet.ts";
import { addInflows, type Inflow } from "../../../score/lookup/inflows.ts";
import type { Basis, InflowReader, Mark, Progress, ReadPlan } from "../../../score/lookup/lookup-ports.ts";
import { createMarks, type MarkStore, USED_TOPIC } from "./marks.ts";

const USDC = NETWORKS[MAIN_NETWORK].usdc.address;
const NOBODY: Address = "0x0000000000000000000000000000000000000000";
/** In one request. */
const MOST_WALLETS = 100;
/** After an answer with fewer logs, four times as many blocks are asked for: one crowded day must not make all others dear. */
const FEW_LOGS = 1_000;
const WIDEN = 4;
/** A smaller width is kept for so long before twice as many blocks are tried again. */
const GROW_AFTER_MS = 600_000;

const topicOf = (address: Address): string => `0x${address.slice(2).padStart(64, "0")}`;
const addressOf = (topic: string | undefined): Address => `0x${(topic ?? "").slice(26)}`;

export interface InflowReaderParts {
  readonly provider: Provider;
  readonly marks: MarkStore;
  /** Milliseconds; defaults to the machine's clock. */
  readonly now?: () => number;
}

/** Wallets that were read equally far. */
interface Group {
  readonly wallets: readonly Progress[];
  /** The blocks are read after this mark; null: from the first block on. */
  readonly after: Mark | null;
}

/**
 * Reads transfers to wallets by `eth_getLogs`, for many wallets at once. Each request also asks for the authorizations of
 * two marks, one at either end of its blocks: an answer without them, or with another block's hash, comes from a node that
 * lags, has pruned, or is on another chain, and does not count.
 */
export function createInflowReader({ provider, marks: store, now = Date.now }: InflowReaderParts): InflowReader {
  const marks = createMarks(provider, store);
  const widest = createWidest(now);

  const ask = async (wallets: readonly Address[], from: number, [bottom, top]: readonly [Mark, Mark]) => {
    const topics = [[TRANSFER_TOPIC, USED_TOPIC], null, [...wallets.map(topicOf), bottom.nonce, top.nonce]];
    const filter = { address: USDC, topics };
    const read = (answer: unknown) => {
      const logs = readLogAnswer(answer, filter, { first: from, last: top.block });
      const lack = lackOf(logs, bottom) ?? lackOf(logs, top);
      if (lack !== null) throw new WrongAnswerError(lack);
      return logs;
    };
    const asked = { ...filter, fromBlock: quantity(from), toBlock: quantity(top.block) };
    const logs = await provider.ask("eth_getLogs", [asked], read);
    return logs.filter((log) => log.topics[0] === TRANSFER_TOPIC);
  };

  /** Reads one group on to the end, in as few requests as are allowed. */
  const readGroup = async (basis: Basis, { wallets, after }: Group, plan: ReadPlan): Promise<void> => {
    let [group, at, width] = [wallets, after, Number.POSITIVE_INFINITY];
    const { end, spend } = plan;
    while (group.length > 0 && (at?.block ?? -1) < end.block) {
      const from = at?.block ?? basis.firstBlock;
      const wide = Math.max(1, Math.min(width, widest.current()));
      const isWhole = end.block - from + 1 <= wide;
      const next = { first: (at?.block ?? basis.firstBlock - 1) + 1, last: isWhole ? end.block : from + wide - 1 };
      const top = isWhole
        ? end
        : ((await marks.nearLast(next, spend)) ??
          (await marks.nearFirst({ first: next.last, last: end.block }, spend)));
      const bottom = at ?? (top && (await marks.nearFirst({ first: from, last: top.block }, spend)));
      if (top === null || bottom === null)
        throw new Error(`no authorized payment marks blocks ${from} to ${end.block}`);
      await spend();
      try {
        const logs = await ask(
          group.map(({ wallet }) => wallet),
          from,
          [bottom, top],
        );
        group = advance(group, logs, { basis, after: at?.block ?? -1, top });
        await plan.save(group);
        group = group.filter(({ inflows }) => inflows.fullAt === null);
        at = top;
        if (logs.length < FEW_LOGS) width *= WIDEN;
      } catch (error) {
        if (!(error instanceof TooMuchError)) throw error;
        const blocks = top.block - from + 1;
        // There are too few marks to ask for less.
        if ((error.isRange || group.length === 1) && (blocks === 1 || blocks > wide)) throw error;
        if (error.isRange) widest.shrink(Math.floor(blocks / 2));
        else if (group.length > 1) {
          const half = group.length >> 1;
          await readGroup(basis, { wallets: group.slice(0, half), after: at }, plan);
          group = group.slice(half);
        } else width = Math.floor(blocks / 2);
      }
    }
  };

  return {
    final: ({ firstBlock }, spend) => marks.final(firstBlock, spend),
    async read(basis, plan) {
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

/** Why an answer cannot be from a node that has the mark's block; null if it can. */
function lackOf(logs: readonly Log[], { block, hash, nonce }: Mark): string | null {
  const shown = logs.find((log) => log.topics[0] === USED_TOPIC && log.topics[2] === nonce && log.block === block);
  if (shown === undefined) return `the answer lacks block ${block}`;
  return shown.blockHash === hash ? null : `block ${block} is final, but has another hash`;
}

interface Step {
  readonly basis: Basis;
  /** What is in this block or before is counted already. */
  readonly after: number;
  readonly top: Mark;
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
    const ignored = new Set([...basis.ignored, NOBODY, wallet]);
    const added = (byWallet.get(wallet) ?? []).map(inflowOf);
    return { wallet, through: top, inflows: addInflows(inflows, added, ignored) };
  });
}

/** How many blocks providers let one ask for: it shrinks at once, and doubles every ten minutes. */
function createWidest(now: () => number) {
  let [learned, since] = [Number.POSITIVE_INFINITY, 0];
  return {
    current: (): number => learned * 2 ** Math.floor((now() - since) / GROW_AFTER_MS),
    shrink: (blocks: number): void => {
      [learned, since] = [Math.max(1, blocks), now()];
    },
  };
}
