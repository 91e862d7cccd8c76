import { setTimeout as sleep } from "node:timers/promises";
import { judgeRefusal, type RefusedAnswer, waitOf } from "./refusals.ts";

/** The history could not be fetched: a setting is wrong, or nodes failed too often. Fetched files stay. */
export class FetchError extends Error {
  override readonly name = "FetchError";
}

/** The node refuses a request of this size; a smaller one may do. */
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
  /** The same with a limit: `spend` lets each request through that is sent, and an error that it throws ends the asking. */
  readonly spending: (spend: () => Promise<void>) => Pick<Provider, "ask" | "askAll">;
  /** Requests sent so far, and bytes of JSON received. */
  readonly traffic: () => Traffic;
}

const TIMEOUT_MS = 60_000;
/** The most bytes of JSON in one answer. */
const MOST_BYTES = 64_000_000;
const MOST_TRIES = 12;
/** At the start, of each of several nodes. */
const FIRST_TRIES = 3;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;
/** A node that asks to be left alone for longer is asked again after this. */
const LONGEST_REST_MS = 600_000;
/** Longer rests are reported. */
const SHORT_REST_MS = 10_000;
const MESSAGE_CHARACTERS = 300;

interface RpcNode {
  readonly url: string;
  /** Its name in messages, without the key that URLs often have. */
  readonly name: string;
  /** When the next request may be sent, by a monotonic clock. */
  next: number;
}

class Refused extends Error {
  readonly answer: RefusedAnswer;

  constructor(answer: RefusedAnswer) {
    super(answer.message);
    this.answer = answer;
  }
}

interface RpcBody {
  readonly result?: unknown;
  readonly error?: { readonly code?: number; readonly message?: unknown } | null;
}

/** Sends one request. */
async function send(url: string, call: object, traffic: { bytes: number }): Promise<unknown> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...call }),
    redirect: "error",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const text = await readText(response);
  traffic.bytes += text.length;
  const refuse = (message: string, code?: number): never => {
    const [retryAfter, date] = [response.headers.get("retry-after"), response.headers.get("date")];
    throw new Refused({
      ...{ status: response.status, code, message: message.slice(0, MESSAGE_CHARACTERS) },
      ...{ retryAfter, date },
    });
  };
  const body = parse(text);
  if (body?.error != null) return refuse(String(body.error.message), body.error.code);
  if (!response.ok || body === null) return refuse(`HTTP ${response.status}: ${text}`);
  // A node that lags does not have the block or its logs yet: that is no answer.
  return body.result ?? refuse("the answer is null");
}

/** @throws TooMuchError before an answer fills the memory */
async function readText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > MOST_BYTES) throw new TooMuchError(`an answer has more than ${MOST_BYTES} bytes`, false);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
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
  /** Called with the name of a node that rests, and for how long. */
  readonly tell?: (line: string) => void;
}

interface Asked<T> {
  readonly method: string;
  readonly params: readonly unknown[];
  readonly read: (answer: unknown) => T;
  readonly spend: () => Promise<void>;
  readonly tries: number;
}

/** @param perSecond requests a second to each node */
export function openProvider(
  urls: readonly string[],
  perSecond: number,
  { isLasting = false, tell }: ProviderOptions = {},
): Provider {
  let nodes: readonly RpcNode[] = urls.map((url) => ({ url, name: new URL(url).host, next: 0 }));
  const traffic = { requests: 0, bytes: 0 };

  const attempt = async <T>(among: readonly RpcNode[], asked: Asked<T>): Promise<T> => {
    const failures = new Map<RpcNode, number>();
    const failuresOf = (node: RpcNode): number => failures.get(node) ?? 0;
    let last = "";
    for (let tries = 0; tries < asked.tries; tries += 1) {
      const [node] = among.toSorted((a, b) => failuresOf(a) - failuresOf(b) || a.next - b.next) as [RpcNode];
      await asked.spend();
      const now = performance.now();
      const waitMs = Math.max(0, node.next - now);
      node.next = now + waitMs + 1_000 / perSecond;
      if (waitMs > 0) await sleep(waitMs);
      try {
        traffic.requests += 1;
        return asked.read(await send(node.url, { method: asked.method, params: asked.params }, traffic));
      } catch (error) {
        last = `${node.name}: ${describe(error)}`;
        const restMs = restAfter(error, tries);
        node.next = Math.max(node.next, performance.now() + restMs);
        if (restMs > SHORT_REST_MS) tell?.(`${last}. It is asked again in ${Math.round(restMs / 1_000)} s`);
      }
      failures.set(node, failuresOf(node) + 1);
      if (failures.size === among.length) await sleep(backOff(tries - among.length));
    }
    throw new FetchError(`${asked.method} failed ${asked.tries} times, at last with ${last}. Run it again to go on`);
  };

  const spending: Provider["spending"] = (spend) => ({
    ask: (method, params, read) => attempt(nodes, { method, params, read, spend, tries: MOST_TRIES }),
    askAll: async (method, params, read) => {
      const tries = nodes.length === 1 ? MOST_TRIES : FIRST_TRIES;
      const asked = nodes.map((node) => attempt([node], { method, params, read, spend, tries }));
      const settled = await Promise.allSettled(asked);
      const answers = settled.filter((one) => one.status === "fulfilled").map(({ value }) => value);
      // A node that was not asked because `spend` refused has not failed.
      if (answers.length === 0 || settled.some((one) => one.status === "rejected" && !isOfNodes(one.reason)))
        await Promise.all(asked);
      if (!isLasting) nodes = nodes.filter((_, index) => settled[index]?.status === "fulfilled");
      return answers;
    },
  });
  return { ...spending(async () => undefined), spending, traffic: () => ({ ...traffic }) };
}

const isOfNodes = (error: unknown): boolean => error instanceof FetchError || error instanceof TooMuchError;

const backOff = (times: number): number => Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.max(0, times));

function describe(error: unknown): string {
  const { message, cause } = error as Error & { readonly cause?: NodeJS.ErrnoException };
  return [message, cause?.message || cause?.code].filter(Boolean).join(": ");
}

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
