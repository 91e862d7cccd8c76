import { getLogsRetryHelper } from "@ponder/utils";
import { BaseError, numberToHex, RpcError, type RpcErrorCode, RpcRequestError } from "viem";
import { type BlockRange, widthOf } from "./block-range.ts";

/** How a provider refused an `eth_getLogs`: how many blocks to ask for instead, and what it had too much of. */
export interface LogRefusal {
  readonly width: bigint;
  /** `blocks`: it would refuse any range this wide. `logs`: this range holds too many. */
  readonly tooMany: "blocks" | "logs";
}

/** The codes providers refuse ranges with; their meaning differs so much that a text may overrule them. */
const CODES = new Set([-32_005, -32_600, -32_602, -32_614, -32_701, 35]);
const TEXT =
  /block range|range (is )?too|range limit|exceeds? (limit|the range)|response (size|too large)|more than [\d,]+ (results|logs)|max(imum)? (block|results|number)|narrow your filter|query timeout|log query timed out/i;
/** The same codes also say that we ask too often, or for a block that the node does not have. */
const NOT_THE_RANGE =
  /too many requests|\brate\b|capacity|credits|quota|compute units|request count|beyond current head|(block|header) not found|unknown block|invalid block range/i;
const OF_LOGS = /\b(results|logs|response|timed? ?out)\b/i;
/** Limits in texts that the library does not know. */
const LIMITS = [
  /exceeds limit of (\d[\d,]*)/i,
  /range limit (?:of )?(\d[\d,]*)/i,
  /max(?:imum)? block range(?: of)?\s*[:=]?\s*(\d[\d,]*)/i,
  /exceeds server limit, narrow your filter: (\d[\d,]*)/i,
];

/**
 * What to ask instead of a refused range; null if the error is no refusal of it. Providers agree neither on codes nor on
 * texts (ponder's list in `@ponder/utils`, and INFURA/infura#237, erigontech/erigon#20784, boundless-xyz/boundless#838).
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
