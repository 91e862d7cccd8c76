import { setTimeout as sleep } from "node:timers/promises";
import { BaseError, HttpRequestError, http, ResponseBodyTooLargeError } from "viem";
import { logRefusal } from "./logs.ts";

/** The nodes failed too often, or their answers contradict each other. */
export class ProviderError extends Error {
  override readonly name: string = "ProviderError";
}

/** The node refuses a request of this size. A smaller one may succeed. */
export class TooMuchError extends Error {
  override readonly name = "TooMuchError";
  /** Whether the number of blocks was refused, rather than the size of the response. */
  readonly isRange: boolean;

  constructor(message: string, isRange: boolean) {
    super(message);
    this.isRange = isRange;
  }
}

interface Asking {
  /**
   * Calls one node, and after a failure the next one, until there is an answer. `null` does not count as one.
   * @param read returns the result of an answer, or throws if it is wrong, so that another node is called
   * @throws TooMuchError if fewer blocks or logs should be requested, ProviderError after too many failures
   */
  readonly ask: <T>(method: string, params: readonly unknown[], read: (answer: unknown) => T) => Promise<T>;
  /** Calls every node that has not just failed repeatedly, and returns the answers, at least one. */
  readonly askAll: <T>(
    method: string,
    params: readonly unknown[],
    read: (answer: unknown) => T,
  ) => Promise<readonly T[]>;
}

/** JSON-RPC over one or several URLs. */
export interface Provider extends Asking {
  /** The same with a limit. `spend` is awaited before each request, and an error that it throws ends the call. */
  readonly spending: (spend: () => Promise<void>) => Asking;
  /** Returns the number of requests sent. */
  readonly requests: () => number;
}

const TIMEOUT_MS = 60_000;
/** The most bytes of JSON in one response. */
const MOST_BYTES = 64_000_000;
const MOST_TRIES = 12;
/** The tries for each of several nodes when all are called. */
const FEW_TRIES = 3;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;
/** A node that asks for a longer rest is called again after this time. */
const LONGEST_REST_MS = 600_000;
/** Longer rests are logged. */
const SHORT_REST_MS = 10_000;
const MESSAGE_CHARACTERS = 300;
/** A range by which to recognize a refusal. The caller halves its own. */
const ANY_RANGE = { from: 0n, to: 9_999n };

interface RpcNode {
  /** Its name in messages, without the key that a URL often contains. */
  readonly name: string;
  readonly request: (call: { method: string; params: unknown }) => Promise<unknown>;
  /** When the next request may be sent, by a monotonic clock. */
  next: number;
  /** The number of failures since its last answer. */
  failures: number;
}

interface Asked<T> {
  readonly method: string;
  readonly params: readonly unknown[];
  readonly read: (answer: unknown) => T;
  readonly spend: () => Promise<void>;
  readonly tries: number;
}

/**
 * Opens a provider over these URLs.
 * @param perSecond the requests per second to each node
 * @param tell is called when a node has to rest for long
 */
export function openProvider(
  urls: readonly string[],
  perSecond: number,
  tell: (line: string) => void = () => undefined,
): Provider {
  let requests = 0;
  const nodes = urls.map((url): RpcNode => {
    const node = { name: new URL(url).host, next: 0, failures: 0 };
    const transport = http(url, {
      ...{ timeout: TIMEOUT_MS, retryCount: 0, maxResponseBodySize: MOST_BYTES, fetchOptions: { redirect: "error" } },
      onFetchResponse: ({ status, headers }) => {
        const restMs = status === 200 ? null : waitOf(headers.get("retry-after"), headers.get("date"));
        if (restMs === null) return;
        node.next = Math.max(node.next, performance.now() + restMs);
        const seconds = Math.round(restMs / 1_000);
        if (restMs > SHORT_REST_MS) tell(`${node.name}: HTTP ${status}. Next request in ${seconds} s`);
      },
    });
    return Object.assign(node, { request: transport({}).request });
  });

  const attempt = async <T>(among: readonly RpcNode[], asked: Asked<T>): Promise<T> => {
    let last = "";
    for (let tries = 0; tries < asked.tries; tries += 1) {
      const [node] = among.toSorted((a, b) => a.next - b.next) as [RpcNode];
      await asked.spend();
      const waitMs = Math.max(0, node.next - performance.now());
      node.next = performance.now() + waitMs + 1_000 / perSecond;
      if (waitMs > 0) await sleep(waitMs);
      try {
        requests += 1;
        const answer = await node.request({ method: asked.method, params: asked.params });
        // A lagging node does not have the block or its logs yet.
        if (answer === null || answer === undefined) throw new Error("the answer is null");
        const result = asked.read(answer);
        node.failures = 0;
        return result;
      } catch (error) {
        last = `${node.name}: ${describe(error)}`;
        expectSmallEnough(error, asked.method);
        const restMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** node.failures);
        node.failures += 1;
        node.next = Math.max(node.next, performance.now() + restMs);
      }
    }
    throw new ProviderError(`${asked.method} failed ${asked.tries} times, most recently with ${last}`);
  };

  const spending: Provider["spending"] = (spend) => ({
    ask: (method, params, read) => attempt(nodes, { method, params, read, spend, tries: MOST_TRIES }),
    askAll: async (method, params, read) => {
      const isUp = ({ failures, next }: RpcNode) => failures < FEW_TRIES || next <= performance.now();
      const up = nodes.filter(isUp);
      const among = up.length > 0 ? up : nodes;
      const tries = among.length === 1 ? MOST_TRIES : FEW_TRIES;
      const asked = among.map((node) => attempt([node], { method, params, read, spend, tries }));
      const settled = await Promise.allSettled(asked);
      const answers = settled.filter((one) => one.status === "fulfilled").map(({ value }) => value);
      // A node has not failed if `spend` refused the call.
      if (answers.length === 0 || settled.some((one) => one.status === "rejected" && !isOfNodes(one.reason)))
        await Promise.all(asked);
      return answers;
    },
  });
  return { ...spending(async () => undefined), spending, requests: () => requests };
}

const isOfNodes = (error: unknown): boolean => error instanceof ProviderError || error instanceof TooMuchError;

/** Describes the error without the URL, which may contain a key. */
function describe(error: unknown): string {
  const root = error instanceof BaseError ? error.walk() : error;
  const status = root instanceof HttpRequestError && root.status !== undefined ? `HTTP ${root.status}: ` : "";
  const message = root instanceof BaseError ? root.details || root.shortMessage : (root as Error).message;
  return `${status}${message.slice(0, MESSAGE_CHARACTERS)}`;
}

/** @throws TooMuchError if the error refuses a request for its size */
function expectSmallEnough(error: unknown, method: string): void {
  const isTooLarge =
    error instanceof ResponseBodyTooLargeError || (error instanceof HttpRequestError && error.status === 413);
  const tooMany = isTooLarge ? "logs" : method === "eth_getLogs" ? logRefusal(error, ANY_RANGE)?.tooMany : undefined;
  if (error instanceof TooMuchError) throw error;
  if (tooMany !== undefined) throw new TooMuchError(describe(error), tooMany === "blocks");
}

/** Returns the wait that `Retry-After` requests, by the node's own clock; null if there is none. */
function waitOf(retryAfter: string | null, date: string | null): number | null {
  if (!retryAfter) return null;
  const now = Date.parse(date ?? "") || Date.now();
  const ms = /^\d+(\.\d+)?$/.test(retryAfter) ? Number(retryAfter) * 1_000 : Date.parse(retryAfter) - now;
  return Number.isFinite(ms) ? Math.min(LONGEST_REST_MS, Math.max(0, ms)) : null;
}
