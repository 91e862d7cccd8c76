/** What a node answered instead of a result. */
export interface RefusedAnswer {
  /** The HTTP status. */
  readonly status: number;
  readonly code?: number | undefined;
  readonly message: string;
  /** The header, in seconds or as a date. */
  readonly retryAfter?: string | null | undefined;
  /** The node's time, in the header that a date to wait for is to be compared with. */
  readonly date?: string | null | undefined;
}

/**
 * What to do about it: ask for fewer blocks (the range was refused as such), for fewer logs (the answer would be too
 * large), later, or again.
 */
export type Refusal = "blocks" | "size" | "later" | "again";

// The words of Alchemy, Ankr, Chainstack, Infura, QuickNode, geth, reth and others.
const TOO_OFTEN = /rate limit|too many requests|capacity|compute units|throttl|request limit|requests per/i;
const TOO_MANY_LOGS =
  /more than \d+ (results|logs)|too many (results|logs)|max results|response size|response is too|result.{0,20}(exceed|limit)|(log|size).{0,20}exceed|query timeout/i;
const TOO_MANY_BLOCKS =
  /block range|blocks? range|range.{0,40}(limit|exceed|large|wide|too|than)|(limit|max).{0,40}(range|blocks)|\d range|too many blocks/i;

export function judgeRefusal({ status, code, message }: RefusedAnswer): Refusal {
  if (status === 429 || code === 429 || TOO_OFTEN.test(message)) return "later";
  if (TOO_MANY_LOGS.test(message)) return "size";
  if (TOO_MANY_BLOCKS.test(message)) return "blocks";
  return status === 413 ? "size" : "again";
}

/** How long `Retry-After` asks to wait, in milliseconds; null if it does not say. */
export function waitOf(retryAfter: string | null | undefined, now: number): number | null {
  if (retryAfter === null || retryAfter === undefined || retryAfter === "") return null;
  const ms = /^\d+(\.\d+)?$/.test(retryAfter) ? Number(retryAfter) * 1_000 : Date.parse(retryAfter) - now;
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}
