import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { Agent, type Dispatcher, request } from "undici";
import { judgeRefusal, type RefusedAnswer, waitOf } from "./refusals.ts";

/** The history could not be fetched: a setting is wrong, or nodes failed too often. What is fetched stays. */
export class FetchError extends Error {
  override readonly name = "FetchError";
}

/** The node refuses as much as was asked for; less may do. */
export class TooMuchError extends Error {
  override readonly name = "TooMuchError";
  /** Whether the number of blocks was refused, and not the size of the answer. */
  readonly isRange: boolean;

  constructor(message: string, isRange: boolean) {
    super(message);
    this.isRange = isRange;
  }
}

export interface Traffic {
  readonly requests: number;
  readonly bytes: number;
}

/** JSON-RPC over one or several URLs. */
export interface Provider {
  /**
   * Asks one node, the next one after a failure, until there is an answer. `null` is none.
   * @param read makes of the answer what is returned, or throws what is wrong with it, so that another node is asked.
   * @throws TooMuchError if fewer blocks or logs are to be asked for, FetchError after too many failures.
   */
  readonly ask: <T>(method: string, params: readonly unknown[], read: (answer: unknown) => T) => Promise<T>;
  /** Asks every node. One that does not answer is not asked again, unless it is the only one. */
  readonly askAll: <T>(
    method: string,
    params: readonly unknown[],
    read: (answer: unknown) => T,
  ) => Promise<readonly T[]>;
  /** The same for somebody who pays: `spend` lets each request through that is sent, and what it throws ends the asking. */
  readonly spending: (spend: () => Promise<void>) => Pick<Provider, "ask" | "askAll">;
  /** Sent so far, and how much was received, in bytes of JSON. */
  readonly traffic: () => Traffic;
}

const TIMEOUT_MS = 60_000;
/** Of one answer. */
const MOST_BYTES = 64_000_000;
const MOST_TRIES = 12;
/** At the start, of each of several nodes. */
const FIRST_TRIES = 3;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;
/** A node that asks to be left alone for longer is asked again after this. */
const LONGEST_REST_MS = 600_000;
/** Longer rests are told of. */
const SHORT_REST_MS = 10_000;
const WORDS_OF_A_MESSAGE = 300;

interface RpcNode {
  readonly url: string;
  /** Its name in messages, without the key that URLs often have. */
  readonly name: string;
  /** When the next request may be sent, by a clock that nobody sets. */
  next: number;
}

class Refused extends Error {
  readonly answer: RefusedAnswer;

  constructor(answer: RefusedAnswer) {
    super(answer.message);
    this.answer = answer;
  }
}

/** Connections stay open between requests. What is compressed is counted twice: as it comes, and as it is. */
const agent = new Agent({ maxResponseSize: MOST_BYTES });
/** Some providers refuse who says nothing. */
const HEADERS = { "content-type": "application/json", accept: "*/*", "accept-encoding": "gzip", "user-agent": "node" };

/** In half of the processor time that `fetch` takes. Redirects are not followed. */
async function askOnce(
  url: string,
  { method, params }: Pick<Asked<unknown>, "method" | "params">,
  traffic: { bytes: number },
): Promise<unknown> {
  const answer = await request(url, {
    method: "POST",
    headers: HEADERS,
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
    dispatcher: agent,
  });
  const text = await readText(answer);
  traffic.bytes += text.length;
  const { statusCode: status, headers } = answer;
  const [retryAfter, date] = [headers["retry-after"], headers.date].map((one) => [one].flat()[0]);
  const body = parse(text);
  const error = body?.error;
  if (error !== undefined && error !== null)
    throw new Refused({
      status,
      code: error.code,
      message: String(error.message).slice(0, WORDS_OF_A_MESSAGE),
      ...{ retryAfter, date },
    });
  if (status < 200 || status > 299 || body === null)
    throw new Refused({ status, message: `HTTP ${status}: ${text.slice(0, WORDS_OF_A_MESSAGE)}`, retryAfter, date });
  // While a node lags, it has no block or no logs to tell of: that is no answer.
  if (body.result === null || body.result === undefined) throw new Refused({ status, message: "the answer is null" });
  return body.result;
}

/** Answers are large: in pieces of 16 kB, as is usual, they take three times as long. */
const UNZIPPING = { chunkSize: 2 ** 20, maxOutputLength: MOST_BYTES };
const unzip = promisify<Buffer, typeof UNZIPPING, Buffer>(gunzip);
const TOO_LARGE = ["UND_ERR_RES_EXCEEDED_MAX_SIZE", "ERR_BUFFER_TOO_LARGE"];

/** @throws TooMuchError before an answer fills the memory */
async function readText({ body, headers }: Dispatcher.ResponseData): Promise<string> {
  try {
    const bytes = Buffer.from(await body.arrayBuffer());
    const encoding = String(headers["content-encoding"] ?? "identity").toLowerCase();
    if (encoding === "identity") return bytes.toString("utf8");
    if (encoding !== "gzip") throw new Error(`the answer is compressed by ${encoding}`);
    return (await unzip(bytes, UNZIPPING)).toString("utf8");
  } catch (error) {
    if (!TOO_LARGE.includes(String((error as NodeJS.ErrnoException).code))) throw error;
    throw new TooMuchError(`an answer has more than ${MOST_BYTES} bytes`, false);
  }
}

interface RpcBody {
  readonly result?: unknown;
  readonly error?: { readonly code?: number; readonly message?: unknown } | null;
}

function parse(text: string): RpcBody | null {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null ? body : null;
  } catch {
    return null;
  }
}

interface ProviderOptions {
  /** Whether a node that does not answer `askAll` is asked again the next time. */
  readonly isLasting?: boolean;
  /** Is told which node rests, and for how long. */
  readonly tell?: (line: string) => void;
}

export function openProvider(
  urls: readonly string[],
  perSecond: number,
  { isLasting = false, tell }: ProviderOptions = {},
): Provider {
  let nodes: readonly RpcNode[] = urls.map((url): RpcNode => ({ url, name: new URL(url).host, next: 0 }));
  const traffic = { requests: 0, bytes: 0 };

  /** The node that may be asked first. Those asked in vain come last. */
  const choose = (failed: ReadonlyMap<RpcNode, number>): RpcNode =>
    nodes.toSorted((a, b) => (failed.get(a) ?? 0) - (failed.get(b) ?? 0) || a.next - b.next)[0] as RpcNode;

  const send = async (node: RpcNode, method: string, params: readonly unknown[]): Promise<unknown> => {
    const now = performance.now();
    const at = Math.max(now, node.next);
    node.next = at + 1_000 / perSecond;
    const ms = at - now;
    if (ms > 0) await sleep(ms);
    traffic.requests += 1;
    return askOnce(node.url, { method, params }, traffic);
  };

  const attempt = async <T>(from: (failed: ReadonlyMap<RpcNode, number>) => RpcNode, asked: Asked<T>): Promise<T> => {
    const most = asked.tries ?? MOST_TRIES;
    const failed = new Map<RpcNode, number>();
    let last = "";
    for (let tries = 0; tries < most; tries += 1) {
      const node = from(failed);
      await asked.spend();
      try {
        return asked.read(await send(node, asked.method, asked.params));
      } catch (error) {
        last = `${node.name}: ${describe(error)}`;
        const restMs = restAfter(error, tries);
        node.next = Math.max(node.next, performance.now() + restMs);
        if (restMs > SHORT_REST_MS) tell?.(`${last}. It is asked again in ${Math.round(restMs / 1_000)} s`);
      }
      failed.set(node, (failed.get(node) ?? 0) + 1);
      if (failed.size === nodes.length) await sleep(backOff(tries - nodes.length));
    }
    throw new FetchError(`${asked.method} failed ${most} times, at last with ${last}. Run it again to go on`);
  };

  const spending: Provider["spending"] = (spend) => ({
    ask: (method, params, read) => attempt(choose, { method, params, read, spend }),
    askAll: async <T>(method: string, params: readonly unknown[], read: (answer: unknown) => T) => {
      const tries = nodes.length === 1 ? MOST_TRIES : FIRST_TRIES;
      const asked = nodes.map((node) => attempt(() => node, { method, params, read, spend, tries }));
      const settled = await Promise.allSettled(asked);
      const answers = settled.filter((one) => one.status === "fulfilled").map(({ value }) => value);
      // A node that was not asked for want of money has not failed.
      if (answers.length === 0 || settled.some((one) => one.status === "rejected" && !isOfNodes(one.reason)))
        await Promise.all(asked);
      if (!isLasting) nodes = nodes.filter((_, index) => settled[index]?.status === "fulfilled");
      return answers;
    },
  });
  return { ...spending(async () => undefined), spending, traffic: () => ({ ...traffic }) };
}

const isOfNodes = (error: unknown): boolean => error instanceof FetchError || error instanceof TooMuchError;

interface Asked<T> {
  readonly method: string;
  readonly params: readonly unknown[];
  readonly read: (answer: unknown) => T;
  readonly spend: () => Promise<void>;
  readonly tries?: number;
}

const backOff = (times: number): number => Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.max(0, times));
const describe = (error: unknown): string =>
  error instanceof Error
    ? [error.message || (error as NodeJS.ErrnoException).code, (error.cause as Error | undefined)?.message]
        .filter(Boolean)
        .join(": ")
    : String(error);

/** How long the node is left alone, in milliseconds. @throws TooMuchError if less must be asked for. */
function restAfter(error: unknown, tries: number): number {
  if (error instanceof TooMuchError) throw error;
  if (!(error instanceof Refused)) return 0;
  const refusal = judgeRefusal(error.answer);
  if (refusal === "blocks" || refusal === "size") throw new TooMuchError(error.message, refusal === "blocks");
  if (refusal !== "later") return 0;
  const { retryAfter, date } = error.answer;
  const asked = waitOf(retryAfter, Date.parse(date ?? "") || Date.now()) ?? backOff(tries + 2);
  return Math.min(LONGEST_REST_MS, asked);
}
