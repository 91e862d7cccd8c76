import { getLogsRetryHelper } from "@ponder/utils";
import {
  BaseError,
  formatLog,
  type Log,
  type LogTopic,
  numberToHex,
  type PublicClient,
  RpcError,
  type RpcErrorCode,
  RpcRequestError,
} from "viem";
import type { Address } from "../wallet.ts";
import { asReading } from "./nodes.ts";
import type { Allowance } from "./pace.ts";

/** Blocks, both ends included. */
export interface BlockRange {
  readonly from: bigint;
  readonly to: bigint;
}

const widthOf = ({ from, to }: BlockRange): bigint => to - from + 1n;

export const smaller = (one: bigint, other: bigint): bigint => (one < other ? one : other);
export const larger = (one: bigint, other: bigint): bigint => (one > other ? one : other);

/**
 * How a provider refused an `eth_getLogs`: the number of blocks to request instead, and the limit that was exceeded.
 */
export interface LogRefusal {
  readonly width: bigint;
  /** `blocks`: it refuses any range this wide. `logs`: this range contains too many. */
  readonly tooMany: "blocks" | "logs";
}

/** The codes for refused ranges. Their meaning varies between providers, so a text may overrule them. */
const CODES = new Set([-32_005, -32_600, -32_602, -32_614, -32_701, 35]);
const TEXT =
  /block range|range (is )?too|range limit|exceeds? (limit|the range)|response (size|too large)|more than [\d,]+ (results|logs)|max(imum)? (block|results|number)|narrow your filter|query timeout|log query timed out/i;
/** The same codes are also used for rate limits and for blocks that the node does not have. */
const NOT_THE_RANGE =
  /too many requests|\brate\b|capacity|credits|quota|compute units|request count|beyond current head|(block|header) not found|unknown block|invalid block range/i;
const OF_LOGS = /\b(results|logs|response|timed? ?out)\b/i;
/** Limits in texts unknown to the library. */
const LIMITS = [
  /exceeds limit of (\d[\d,]*)/i,
  /range limit (?:of )?(\d[\d,]*)/i,
  /max(?:imum)? block range(?: of)?\s*[:=]?\s*(\d[\d,]*)/i,
  /exceeds server limit, narrow your filter: (\d[\d,]*)/i,
];

/**
 * Returns a smaller range in place of a refused one; null if the error does not refuse the range. Providers use
 * different codes and texts (ponder's list in `@ponder/utils`, and INFURA/infura#237, erigontech/erigon#20784,
 * boundless-xyz/boundless#838).
 */
export function logRefusal(error: unknown, range: BlockRange): LogRefusal | null {
  if (!(error instanceof BaseError)) return null;
  const text = `${error.shortMessage} ${error.details}`;
  const width = widthOf(range);
  if (width <= 1n || NOT_THE_RANGE.test(error.details)) return null;
  const named = suggested(error, range) ?? limitIn(text);
  if (named === null && !TEXT.test(error.details) && !CODES.has(codeOf(error))) return null;
  const half = width / 2n;
  return {
    width: named !== null && named >= 1n && named < width ? named : half,
    tooMany: OF_LOGS.test(error.details) ? "logs" : "blocks",
  };
}

function suggested(error: BaseError, { from, to }: BlockRange): bigint | null {
  const params = [{ fromBlock: numberToHex(from), toBlock: numberToHex(to) }] as const;
  const coded = new RpcError<RpcErrorCode>(error, { code: codeOf(error), shortMessage: error.shortMessage });
  const found = getLogsRetryHelper({ error: coded, params: [...params] });
  const [first] = found.shouldRetry && found.isSuggestedRange ? found.ranges : [];
  return first === undefined ? null : BigInt(first.toBlock) - BigInt(first.fromBlock) + 1n;
}

function limitIn(text: string): bigint | null {
  const [, digits] = LIMITS.map((pattern) => pattern.exec(text)).find((match) => match !== null) ?? [];
  return digits === undefined ? null : BigInt(digits.replaceAll(",", ""));
}

const codeOf = (error: BaseError): number => {
  const answered = error.walk((cause) => cause instanceof RpcRequestError);
  return answered instanceof RpcRequestError ? answered.code : 0;
};

/** How long a smaller range is used before a range of twice the size is tried again. */
const GROW_AFTER_MS = 600_000;

/** The filter of an `eth_getLogs`. */
export interface LogFilter {
  readonly address: Address | Address[];
  readonly topics: readonly LogTopic[];
}

export type MinedLog = Log<bigint, number, false>;

/** The logs of one accepted call, oldest first, and the blocks that it covered. */
export interface LogPage {
  readonly logs: readonly MinedLog[];
  readonly read: BlockRange;
}

export interface PageTerms {
  /** The end of the range at which to begin. */
  readonly at: "start" | "end";
  /** Refused calls count too. */
  readonly allowance: Allowance;
}

/** Reads logs in ranges that the provider accepts. A refused size is remembered, and tried again much later. */
export interface LogReader {
  /** Reads as much of a range as one call may cover; null once the allowance is spent. */
  page(filter: LogFilter, range: BlockRange, terms: PageTerms): Promise<LogPage | null>;
  /** Reads all logs of a range, oldest first, page by page. */
  pages(filter: LogFilter, range: BlockRange): AsyncGenerator<LogPage>;
  /** Reads the logs from a block to the head of one node, in one call. Rejects if the provider refuses. */
  newest(filter: LogFilter, from: bigint): Promise<readonly MinedLog[]>;
  /** Returns the number of blocks that the next call may cover. */
  width(): bigint;
}

export interface LogReaderParts {
  readonly client: PublicClient;
  /** The most blocks in one call. */
  readonly mostBlocks: number;
  /** Milliseconds since an arbitrary moment; by default a monotonic clock. */
  readonly now?: () => number;
}

interface Asked {
  readonly from: bigint;
  readonly to: bigint | "latest";
}

export function createLogReader({ client, mostBlocks, now = () => performance.now() }: LogReaderParts): LogReader {
  const accepted = createWidth(mostBlocks, now);
  const width = () => BigInt(accepted.current());
  const ask = async ({ address, topics }: LogFilter, { from, to }: Asked, options: { retryCount?: number }) => {
    const toBlock = to === "latest" ? to : numberToHex(to);
    const filter = { address, topics: [...topics], fromBlock: numberToHex(from), toBlock };
    const logs = await client.request({ method: "eth_getLogs", params: [filter] }, options);
    return logs.map((log) => mined(formatLog(log)));
  };
  /** A range with too many logs does not predict the next one. */
  const learn = ({ tooMany, width }: LogRefusal) => (tooMany === "blocks" ? accepted.shrink(Number(width)) : undefined);
  return {
    newest: (filter, from) => ask(filter, { from, to: "latest" }, { retryCount: 0 }),
    width,
    async page(filter, range, { at, allowance }) {
      let failures = 0;
      for (let blocks = width(); allowance.left() > 0; ) {
        const read = at === "start" ? firstOf(range, blocks) : lastOf(range, blocks);
        allowance.spend();
        try {
          return { logs: await asReading(failures, () => ask(filter, read, { retryCount: 0 })), read };
        } catch (error) {
          const refusal = logRefusal(error, read);
          // The node may lag behind the range's end, while another one behind the same address does not.
          if (refusal === null && (++failures > 1 || allowance.left() === 0)) throw error;
          if (refusal === null) continue;
          learn(refusal);
          blocks = refusal.width;
        }
      }
      return null;
    },
    async *pages(filter, range) {
      let narrowed = width();
      for (let from = range.from; from <= range.to; ) {
        const read = firstOf({ from, to: range.to }, smaller(narrowed, width()));
        try {
          yield { logs: await ask(filter, read, {}), read };
          from = read.to + 1n;
          narrowed *= 2n;
        } catch (error) {
          const refusal = logRefusal(error, read);
          if (refusal === null) throw error;
          learn(refusal);
          narrowed = refusal.width;
        }
      }
    },
  };
}

/** @throws Error if a node returns a log without its position in a block */
function mined(log: Log): MinedLog {
  const { blockHash, blockNumber, blockTimestamp = null, logIndex, transactionHash, transactionIndex } = log;
  if (
    blockHash === null ||
    blockNumber === null ||
    logIndex === null ||
    transactionHash === null ||
    transactionIndex === null
  )
    throw new Error("the node shows a log without its place in a block");
  const place = { blockHash, blockNumber, logIndex, transactionHash, transactionIndex };
  return { ...log, ...place, blockTimestamp: blockTimestamp ?? undefined };
}

const firstOf = ({ from, to }: BlockRange, width: bigint): BlockRange => ({
  from,
  to: smaller(to, from + width - 1n),
});

const lastOf = ({ from, to }: BlockRange, width: bigint): BlockRange => ({
  from: larger(from, to - width + 1n),
  to,
});

/** Tracks how many blocks one call may cover: shrinks immediately, and doubles every ten minutes up to its full size. */
export function createWidth(most: number, now: () => number = () => performance.now()) {
  let [learned, since] = [most, 0];
  return {
    current: (): number => Math.min(most, learned * 2 ** Math.max(0, Math.floor((now() - since) / GROW_AFTER_MS))),
    shrink: (blocks: number): void => {
      [learned, since] = [blocks, now()];
    },
  };
}
