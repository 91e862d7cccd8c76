import { Client, type Dispatcher, errors } from "undici";
import {
  type Fetched,
  type Fetcher,
  type FetchRequest,
  isWanted,
  type ResponseHead,
} from "../../../arbiter/fetcher.ts";
import type { GuardSettings } from "../../../arbiter/guard/target.ts";
import { measureBody } from "./body.ts";
import { type Dial, type DialSettings, dialTcp, Failed, openConnection } from "./dial.ts";
import { interfaceAddresses, type Resolve, resolveLocal, resolvePublic } from "./names.ts";
import { createSlots, withDeadline } from "./slots.ts";
import { addressesOf, type VetParts } from "./vet.ts";

export interface GuardedFetchOptions extends GuardSettings {
  /** Sent as `User-Agent`. */
  readonly userAgent: string;
  /** The rest is for tests; each member defaults to its production value. */
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
 * Fetches deliverables from the public Internet and nowhere else. Every name is resolved once, and only addresses that
 * passed the check are connected to. Names and addresses of this machine, its network and the service itself are
 * refused.
 */
export function createGuardedFetch(options: GuardedFetchOptions): Fetcher {
  const parts: Parts = {
    settings: options,
    userAgent: options.userAgent,
    resolve: options.resolve ?? resolvePublic,
    resolveAllowed: options.resolve ?? resolveLocal,
    interfaces: options.ownAddresses ?? interfaceAddresses,
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

/** What an attempt has seen so far; kept if any step fails. */
interface Progress {
  readonly redirects: { readonly status: number; readonly location: string }[];
  head: ResponseHead | null;
}

async function attempt(parts: Parts, request: FetchRequest, signal: AbortSignal): Promise<Fetched> {
  const progress: Progress = { redirects: [], head: null };
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

/** Null if the caller gave up, which is not an observation. */
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

/** One request: the measured body, null if it is not wanted, or where to go next. */
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
    const response = await unlessAborted(send(client, { url, userAgent: parts.userAgent, signal }), signal);
    progress.head = headOf(response);
    const { status } = progress.head;
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
  { url, userAgent, signal }: { readonly url: URL; readonly userAgent: string; readonly signal: AbortSignal },
): Promise<Dispatcher.ResponseData> {
  try {
    return await client.request({
      method: "GET",
      path: `${url.pathname}${url.search}`,
      headers: { accept: "*/*", "accept-encoding": "identity", "user-agent": userAgent, connection: "close" },
      signal,
    });
  } catch (cause) {
    const isNotHttp = cause instanceof errors.HTTPParserError || cause instanceof errors.HeadersOverflowError;
    throw cause instanceof Failed ? cause : new Failed(isNotHttp ? "bad_response" : "reset", cause);
  }
}

const single = (value: string | string[] | undefined): string | null =>
  Array.isArray(value) ? value.join(", ") : (value ?? null);

const headOf = ({ statusCode, headers }: Dispatcher.ResponseData): ResponseHead => ({
  status: statusCode,
  contentType: single(headers["content-type"]),
  contentEncoding: single(headers["content-encoding"]),
});

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Where a redirect leads (RFC 9110, section 10.2.2); its target is checked when it is followed. */
function redirectTarget(from: URL, { headers }: Dispatcher.ResponseData): URL {
  const { location } = headers;
  const target = typeof location === "string" && location !== "" && URL.canParse(location, from.href);
  if (!target) throw new Failed("redirect");
  const next = new URL(location, from.href);
  if (from.protocol === "https:" && next.protocol === "http:") throw new Failed("redirect");
  return next;
}

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
