import { Agent, request } from "undici";
import { BaseError, ContractFunctionRevertedError } from "viem";
import { isTraced, traced } from "../telemetry/tracing.ts";

/** The maximum size of a node's response, in bytes: viem's own limit. */
const MOST_BYTES = 10 * 1024 * 1024;

/** Connections to nodes stay open between calls. */
const nodes = new Agent({ maxResponseSize: MOST_BYTES });

/** The same headers as `fetch`, because some providers refuse requests without them. */
const CALLER = { accept: "*/*", "user-agent": "node" };

/**
 * Sends a JSON-RPC call in less than half of the processor time of `fetch`. The call's time limit covers the whole
 * body, which has been read when the response is returned. Redirects are not followed, because payers' signatures may
 * go only to the configured node. Nothing is compressed. Errors contain only a code, because a node's address may be
 * secret.
 */
export function rpcFetch(url: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  if (!isTraced()) return post(url, init);
  const methods = [...String(init.body).matchAll(/"method":"(\w+)"/g)].map(([, name]) => name);
  const method = [...new Set(methods)].join(", ");
  const attributes = { "rpc.system": "jsonrpc", "rpc.method": method, "trust.rpc.calls": methods.length };
  return traced(method, { kind: "client", attributes }, () => post(url, init));
}

async function post(url: string | URL | Request, { headers, body, signal }: RequestInit): Promise<Response> {
  const own = { ...CALLER, ...Object.fromEntries(new Headers(headers)) };
  const sent = { method: "POST", headers: own, body: String(body), signal: signal ?? null, dispatcher: nodes } as const;
  const { answer, text } = await read(request(String(url), sent)).catch((error: NodeJS.ErrnoException) => {
    throw error.name === "AbortError" ? error : new Error(`the node cannot be read: ${error.code ?? error.name}`);
  });
  const { statusCode: status, statusText } = answer;
  const named = Object.entries(answer.headers).map(([name, value]): [string, string] => [name, String(value)]);
  return new Response(text, { status, statusText, headers: named });
}

async function read(answering: ReturnType<typeof request>) {
  const answer = await answering;
  return { answer, text: await answer.body.text() };
}

/** The most calls that Base's own nodes accept in one request. */
export const CALLS_IN_A_BATCH = 10;

interface Call {
  readonly id: number;
}

interface RpcError {
  readonly code?: unknown;
  readonly message?: unknown;
}

interface Answer {
  readonly id?: unknown;
  readonly error?: RpcError | null;
}

interface Answered {
  readonly answers: readonly Answer[];
  /** The most calls that the node answered in one request. */
  readonly largest: number;
  /** False if a call that was sent alone got an error, because then its batch may have been refused for that call. */
  readonly isProven: boolean;
  /** The most calls to send from now on. */
  readonly limit: number;
}

/** `failed` is the response with which every call of the batch fails. */
type Outcome = Answered | { readonly failed: Response };

interface Asking {
  readonly most: number;
  readonly post: (asked: Call | readonly Call[]) => Promise<Response>;
}

/**
 * Makes viem's batches fit the node. A batch that the node refuses for its size is sent again in halves, and the
 * accepted size is remembered. viem pairs calls and answers by position, so a response counts only if it has each
 * call's id once.
 */
export function createBatchFetch(send: typeof rpcFetch): typeof rpcFetch {
  let most = Number.POSITIVE_INFINITY;
  return async (url, init = {}) => {
    const body = String(init.body);
    if (!body.startsWith("[")) return send(url, init);
    const post = (asked: Call | readonly Call[]) => send(url, { ...init, body: JSON.stringify(asked) });
    const outcome = await ask(JSON.parse(body) as readonly Call[], { most, post });
    if ("failed" in outcome) return outcome.failed;
    most = Math.min(most, outcome.limit);
    return Response.json(outcome.answers);
  };
}

async function ask(calls: readonly Call[], { most, post }: Asking): Promise<Outcome> {
  const [only] = calls;
  if (only !== undefined && calls.length === 1) return askAlone(only, post);
  if (calls.length > most)
    return merged(await Promise.all(pieces(calls, most).map((some) => ask(some, { most, post }))));
  const response = await post(calls);
  const text = await response.text();
  const body = parse(text);
  const answers = answersIn(body, calls);
  if (answers !== null) return { answers, largest: calls.length, isProven: true, limit: Number.POSITIVE_INFINITY };
  const error = errorIn(body);
  if (!isRefusedBatch({ status: response.status, text, isJson: error !== null || Array.isArray(body) }))
    return error === null ? unanswered(calls, new Response(text, response)) : failedAlike(calls, error);
  const outcome = await ask(calls, { most: Math.ceil(calls.length / 2), post });
  if ("failed" in outcome || !outcome.isProven) return outcome;
  return { ...outcome, limit: Math.min(outcome.limit, outcome.largest) };
}

/** Sends the call as an object, because some nodes do not accept arrays. */
async function askAlone(call: Call, post: Asking["post"]): Promise<Outcome> {
  const response = await post(call);
  const text = await response.text();
  const body = parse(text);
  const error = errorIn(body);
  const isAnswer = response.ok && typeof body === "object" && body !== null && !Array.isArray(body);
  if (error === null && !isAnswer) return unanswered([call], new Response(text, response));
  const limit = Number.POSITIVE_INFINITY;
  return { answers: [{ ...(body as Answer), id: call.id }], largest: 1, isProven: error === null, limit };
}

function merged(outcomes: readonly Outcome[]): Outcome {
  const failed = outcomes.find((outcome) => "failed" in outcome);
  if (failed !== undefined) return failed;
  const answered = outcomes as readonly Answered[];
  return {
    answers: answered.flatMap(({ answers }) => answers),
    largest: Math.max(...answered.map(({ largest }) => largest)),
    isProven: answered.every(({ isProven }) => isProven),
    limit: Math.min(...answered.map(({ limit }) => limit)),
  };
}

/** The answers for a node that is busy or out of credit, where a smaller batch would not help. */
const failedAlike = (calls: readonly Call[], error: RpcError): Answered => ({
  answers: calls.map(({ id }) => ({ id, error })),
  largest: calls.length,
  isProven: false,
  limit: Number.POSITIVE_INFINITY,
});

/**
 * Without an answer to each call, a success would leave viem without an error to retry on.
 * @param response not yet read
 */
const unanswered = (calls: readonly Call[], response: Response): Outcome =>
  response.ok ? failedAlike(calls, NO_ANSWER) : { failed: response };

/** JSON-RPC's internal error, on which viem retries. */
const NO_ANSWER: RpcError = { code: -32603, message: "the node's response does not answer the calls" };

const pieces = (calls: readonly Call[], size: number): readonly (readonly Call[])[] =>
  Array.from({ length: Math.ceil(calls.length / size) }, (_, index) => calls.slice(index * size, (index + 1) * size));

const ASKED_TOO_OFTEN = /too many requests|\brate\b|capacity|credits|quota|compute units|request count/i;
const BUSY_OR_CLOSED = new Set([401, 403, 404, 429, 502, 503, 504]);

/**
 * Whether a batch was refused for its size. Nodes use different statuses and codes: Base returns -32014, geth an array
 * of one, dRPC HTTP 500 with code 31, proxies 413 without JSON.
 */
function isRefusedBatch({ status, text, isJson }: { status: number; text: string; isJson: boolean }): boolean {
  if (/\bbatch/i.test(text)) return true;
  if (BUSY_OR_CLOSED.has(status) || ASKED_TOO_OFTEN.test(text)) return false;
  return isJson || status === 400 || status === 413;
}

/** Returns the answers, if there is one for each call and none of them refuses the batch. */
function answersIn(body: unknown, calls: readonly Call[]): readonly Answer[] | null {
  if (!Array.isArray(body) || body.length !== calls.length) return null;
  const answers = body as readonly Answer[];
  // Some nodes return numbers as text.
  const ids = new Set(answers.map((answer) => String(answer?.id)));
  const isRefused = answers.some((answer) => isOfBatch(answer?.error));
  return calls.every(({ id }) => ids.has(String(id))) && !isRefused ? answers : null;
}

/** Excludes reverts, because a contract's message may contain "batch" too. */
const isOfBatch = (error: RpcError | null | undefined): boolean =>
  /\bbatch/i.test(String(error?.message ?? "")) && !/revert/i.test(String(error?.message));

function errorIn(body: unknown): RpcError | null {
  if (typeof body !== "object" || body === null || !("error" in body)) return null;
  const { error } = body;
  const isError = typeof error === "object" && error !== null && "code" in error && "message" in error;
  return isError ? error : null;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const MAX_REASON_LENGTH = 300;

/**
 * Removes secrets from viem's errors, which print calldata with payers' signatures, and the node's URL with a key.
 * Neither may appear in a log.
 */
export const withoutSecrets = (error: unknown): unknown =>
  error instanceof BaseError
    ? new Error(
        `${error.name}: ${error.shortMessage} ${error.details}`
          .replace(/[0-9a-f]{64,}/gi, "…")
          .slice(0, MAX_REASON_LENGTH),
      )
    : error;

/** Runs the work, replacing its errors with ones that are safe to log. */
export const discreet =
  <Arguments extends readonly unknown[], T>(work: (...given: Arguments) => Promise<T>) =>
  (...given: Arguments): Promise<T> =>
    work(...given).catch((error: unknown) => {
      throw withoutSecrets(error);
    });

/** Returns the reason for a contract's revert, in its own words if it gave any. */
export const revertReason = (error: unknown): string => {
  const reverted = error instanceof BaseError ? error.walk((e) => e instanceof ContractFunctionRevertedError) : null;
  return reverted instanceof ContractFunctionRevertedError
    ? (reverted.reason ?? "it reverted without a reason")
    : "it reverted";
};

/** True if a call used up all of its gas. Nodes report that in words. */
export const isOutOfGas = (error: unknown): boolean =>
  error instanceof BaseError && /out of gas|OutOfGas|gas required exceeds|intrinsic gas/i.test(error.message);

const UNREADABLE_ANSWERS = new Set([
  "AbiDecodingDataSizeTooSmallError",
  "AbiDecodingZeroDataError",
  "ContractFunctionZeroDataError",
]);

/** True if the node failed to answer, as opposed to a refusal by the contract. */
export const isTransport = (error: unknown): boolean =>
  !(
    error instanceof BaseError &&
    error.walk(
      (e) => e instanceof ContractFunctionRevertedError || (e instanceof BaseError && UNREADABLE_ANSWERS.has(e.name)),
    ) !== null
  );

/** The words in which nodes report that a call ended in the contract without a revert. */
const HALTS =
  /out of gas|OutOfGas|EVM error|invalid opcode|invalid jump|stack (underflow|overflow|limit)|gas uint64 overflow|return data out of bounds/i;
const INTERNAL_ERROR = -32_603;

/**
 * True if the call ended in the contract, by a result, a revert, or a halt, so that it would end the same way on
 * another node. A node's internal error, which viem treats as a revert, proves nothing.
 */
export function isContracts(error: unknown): boolean {
  if (!(error instanceof BaseError)) return false;
  const internal = error.walk((e) => e instanceof BaseError && "code" in e && e.code === INTERNAL_ERROR);
  const said = internal instanceof BaseError ? internal.details : error.message;
  if (HALTS.test(said)) return true;
  return !isTransport(error) && (internal === null || /revert/i.test(said));
}
