import PQueue from "p-queue";
import { Client, type Dispatcher, errors } from "undici";
import type { GuardSettings } from "../target.ts";
import { measureBody } from "./body.ts";
import {
  addressesOf,
  type Dial,
  type DialSettings,
  dialTcp,
  Failed,
  interfaceAddresses,
  openConnection,
  type Resolve,
  resolveLocal,
  resolvePublic,
  type VetParts,
} from "./dial.ts";
import {
  Busy,
  type ChallengeHeader,
  type Fetched,
  type Fetcher,
  type FetchRequest,
  isWanted,
  type ResponseHead,
} from "./request.ts";

type Slots = <Value>(signal: AbortSignal, work: () => Promise<Value>) => Promise<Value>;

const RETRY_AFTER_SECONDS = 10;

/** Limits the number of concurrent tasks. The others wait in order of arrival, and fail with `Busy` after `queueMs`. */
function createSlots(limit: number, queueMs: number): Slots {
  const queue = new PQueue({ concurrency: limit });
  return (signal, work) => {
    const wait = new AbortController();
    const timer = setTimeout(() => wait.abort(new Busy(RETRY_AFTER_SECONDS)), queueMs);
    const begin = () => {
      clearTimeout(timer);
      return work();
    };
    return queue.add(begin, { signal: AbortSignal.any([signal, wait.signal]) }).finally(() => clearTimeout(timer));
  };
}

/** Runs work under a signal that aborts with `Failed("timeout")` at the deadline, or when the caller's does. */
export async function withDeadline<Value>(
  deadlineMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(new Failed("timeout")), deadlineMs);
  try {
    return await work(AbortSignal.any([signal, deadline.signal]));
  } finally {
    clearTimeout(timer);
  }
}

export interface GuardedFetchOptions extends GuardSettings {
  /** The value of `User-Agent`. */
  readonly userAgent: string;
  /** The other members are for tests, and default to their production values. */
  readonly resolve?: Resolve;
  readonly dial?: Dial;
  readonly ca?: DialSettings["ca"];
  readonly ownAddresses?: () => readonly string[];
  readonly deadlineMs?: number;
  readonly maxFetches?: number;
  readonly queueMs?: number;
}

interface Parts extends DialSettings, VetParts {
  readonly userAgent: string;
}

const MAX_FETCHES = 64;
const QUEUE_MS = 20_000;

/**
 * Creates a fetcher of deliverables from the public Internet only. Every name is resolved once, and only addresses that
 * passed the check are connected to. Names and addresses of this machine, its network, and the service itself are
 * refused.
 */
export function createGuardedFetch(options: GuardedFetchOptions): Fetcher {
  const parts: Parts = {
    settings: options,
    userAgent: options.userAgent,
    resolve: options.resolve ?? resolvePublic,
    resolveAllowed: options.resolve ?? resolveLocal,
    interfaces: options.ownAddresses ?? interfaceAddresses,
    refusesNeighbors: false,
    dial: options.dial ?? dialTcp,
    ca: options.ca,
  };
  const slots = createSlots(options.maxFetches ?? MAX_FETCHES, options.queueMs ?? QUEUE_MS);
  return {
    attempt(request, signal) {
      const deadlineMs = options.deadlineMs ?? request.limits.deadlineMs;
      return slots(signal, () => withDeadline(deadlineMs, signal, (deadline) => attempt(parts, request, deadline)));
    },
  };
}

/** The progress of an attempt, kept if any step fails. */
interface Progress {
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly redirects: { readonly status: number; readonly location: string }[];
  head: ResponseHead | null;
}

async function attempt(parts: Parts, request: FetchRequest, signal: AbortSignal): Promise<Fetched> {
  const progress: Progress = { requestHeaders: headersFor(parts, request), redirects: [], head: null };
  try {
    let url = new URL(request.url);
    for (;;) {
      const next = await hop(parts, { url, request, progress }, signal);
      if (!(next instanceof URL)) return { ...progress, body: next, failure: null };
      progress.head = null;
      url = next;
    }
  } catch (cause) {
    const failure = failureOf(cause, signal);
    if (failure === null) throw cause;
    return { ...progress, body: null, failure };
  }
}

/** Codings are not requested, because a hash covers the content. If a server applies one anyway, it is undone. */
const headersFor = ({ userAgent }: Parts, { browser }: FetchRequest): Readonly<Record<string, string>> => ({
  accept: browser?.accept ?? "*/*",
  "accept-encoding": "identity",
  ...(browser && { "accept-language": browser.acceptLanguage }),
  connection: "close",
  "user-agent": browser ? `${browser.userAgent} ${userAgent}` : userAgent,
});

/** Returns the failure; null if the caller gave up, which is not an observation. */
function failureOf(cause: unknown, signal: AbortSignal): Fetched["failure"] {
  if (signal.aborted) return signal.reason instanceof Failed ? signal.reason.failure : null;
  if (cause instanceof Failed) return cause.failure;
  throw cause;
}

interface Hop {
  readonly url: URL;
  readonly request: FetchRequest;
  readonly progress: Progress;
}

/** Makes one request. Returns the measured body, null if it is not wanted, or the next URL. */
async function hop(parts: Parts, { url, request, progress }: Hop, signal: AbortSignal) {
  const addresses = await unlessAborted(addressesOf(parts, url, signal), signal);
  const socket = await openConnection({ url, addresses }, parts, signal);
  // The connection is already open; a second one is never opened.
  let isUsed = false;
  const client = new Client(url.origin, {
    // undici rechecks its queue only if the callback comes after the call returns.
    connect: (_options, callback) =>
      queueMicrotask(() => {
        if (isUsed || socket.destroyed) return callback(new Failed("reset"), null);
        isUsed = true;
        callback(null, socket);
      }),
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  try {
    // Until undici starts writing a request, the request ignores its signal.
    const response = await unlessAborted(send(client, { url, headers: progress.requestHeaders, signal }), signal);
    progress.head = headOf(response, request.challenges ?? []);
    const { status, challenge } = progress.head;
    if (challenge !== null) return null;
    if (isWanted(status, request.expectStatus)) return await read(response, request, progress.head);
    if (!REDIRECTS.has(status)) return null;
    if (progress.redirects.length >= request.limits.maxRedirects) throw new Failed("redirect");
    const next = redirectTarget(url, response);
    progress.redirects.push({ status, location: `${next.origin}${next.pathname}` });
    return next;
  } finally {
    socket.destroy();
    client.destroy().catch(() => {});
  }
}

function unlessAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
    if (signal.aborted) onAbort();
  });
}

async function send(
  client: Client,
  {
    url,
    headers,
    signal,
  }: { readonly url: URL; readonly headers: Record<string, string>; readonly signal: AbortSignal },
): Promise<Dispatcher.ResponseData> {
  try {
    return await client.request({
      method: "GET",
      path: `${url.pathname}${url.search}`,
      headers,
      signal,
    });
  } catch (cause) {
    const isNotHttp = cause instanceof errors.HTTPParserError || cause instanceof errors.HeadersOverflowError;
    throw cause instanceof Failed ? cause : new Failed(isNotHttp ? "bad_response" : "reset", cause);
  }
}

const single = (value: string | string[] | undefined): string | null =>
  Array.isArray(value) ? value.join(", ") : (value ?? null);

const headOf = (response: Dispatcher.ResponseData, challenges: readonly ChallengeHeader[]): ResponseHead => ({
  status: response.statusCode,
  contentType: single(response.headers["content-type"]),
  contentEncoding: single(response.headers["content-encoding"]),
  challenge: challengeIn(response, challenges),
});

function challengeIn(
  { statusCode, headers }: Dispatcher.ResponseData,
  challenges: readonly ChallengeHeader[],
): string | null {
  const found = challenges.find(({ name, values, fromStatus }) => {
    const sent = single(headers[name])?.toLowerCase().split(",") ?? [];
    return (
      sent.length > 0 &&
      statusCode >= fromStatus &&
      (values?.some((one) => sent.some((it) => it.trim() === one)) ?? true)
    );
  });
  return found === undefined ? null : `${found.name}: ${single(headers[found.name])}`;
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Returns the target of a redirect (RFC 9110, section 10.2.2), which is checked when it is followed. */
function redirectTarget(from: URL, { headers }: Dispatcher.ResponseData): URL {
  const location = typeof headers.location === "string" ? escapeBytes(headers.location) : "";
  if (location === "" || !URL.canParse(location, from.href)) throw new Failed("redirect");
  const next = new URL(location, from.href);
  if (from.protocol === "https:" && next.protocol === "http:") throw new Failed("redirect");
  return next;
}

/**
 * Escapes bytes beyond ASCII. A header arrives as one character per byte, which `URL` would encode as Latin-1, so that
 * UTF-8 would lead to another path. Escaped, they stay the bytes that the server sent, even in a host name.
 */
const escapeBytes = (header: string): string =>
  header.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);

async function read(
  { body, headers }: Dispatcher.ResponseData,
  { contains, keep, limits }: FetchRequest,
  head: ResponseHead,
) {
  // A transfer coding (RFC 9112, section 7) that we never offered to undo would be hashed as if it were content.
  if (!/^chunked$/i.test(single(headers["transfer-encoding"]) ?? "chunked")) throw new Failed("bad_response");
  if (Number(headers["content-length"] ?? 0) > limits.maxBodyBytes) throw new Failed("too_large");
  try {
    return await measureBody(body, { contentEncoding: head.contentEncoding, contains, ...(keep && { keep }), limits });
  } catch (cause) {
    throw cause instanceof Failed ? cause : new Failed("truncated", cause);
  }
}
