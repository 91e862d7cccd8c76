import type { ServerResponse } from "node:http";
import { joined } from "./bytes.ts";
import { MAX_BODY_BYTES } from "./delivery.ts";
import { override } from "./overrides.ts";
import { ownHeaders } from "./own-headers.ts";

export interface Capture {
  /** Status, headers, and body, as the handlers send them. */
  readonly taken: Promise<Response>;
  /** Ends the response; the handlers can no longer do so. */
  breakOff(): void;
  /** Restores the response to its earlier state, including listeners that others have added. */
  release(): void;
}

/**
 * Captures everything sent on a response, so that the client sees none of it. Once it has ended, nothing more can be
 * sent.
 */
export function capture(response: ServerResponse): Capture {
  // A copy, because Node appends to its lists in place.
  const before = structuredClone({ ...response.getHeaders() });
  let resolve: (answer: Response) => void = () => {};
  const taken = new Promise<Response>((settle) => {
    resolve = settle;
  });
  const sent: Sent = { head: null, chunks: [], size: 0, hasEnded: false };
  const earlier = listenersOf(response);
  const end = (events: readonly string[], answer: () => Response) => {
    if (sent.hasEnded) return;
    sent.hasEnded = true;
    resolve(orFailure(answer));
    // Listeners run as after any other response; not when the buyer has it, because its connection may be gone.
    queueMicrotask(() => announce(response, events, earlier));
  };
  const finish = () => end(["finish", "close"], () => answerOf(sent));
  const restore = override(response, captured(response, { sent, before: asHeaders(before), finish }));
  return {
    taken,
    breakOff: () => end(["close"], () => failure("The merchant's response broke off.")),
    release() {
      sent.hasEnded = true;
      restore();
      resetHeaders(response, before);
    },
  };
}

interface Sent {
  /** As of the first byte, as with any response. */
  head: { readonly status: number; readonly headers: Headers } | null;
  readonly chunks: Uint8Array[];
  size: number;
  hasEnded: boolean;
}

interface Capturing {
  readonly sent: Sent;
  readonly before: Headers;
  readonly finish: () => void;
}

/** The members of a response that send data, or that report what was sent. */
function captured(response: ServerResponse, { sent, before, finish }: Capturing): Record<string, unknown> {
  const take = (chunk: unknown, encoding: unknown) => {
    // Other middleware may have hooked into it to add headers.
    if (sent.head === null) response.writeHead(response.statusCode);
    if (sent.hasEnded || (typeof chunk !== "string" && !(chunk instanceof Uint8Array))) return;
    const bytes = typeof chunk === "string" ? encoded(chunk, encoding) : new Uint8Array(chunk);
    sent.size += bytes.length;
    // One byte too many is enough to detect it.
    if (sent.size - bytes.length <= MAX_BODY_BYTES) sent.chunks.push(bytes);
  };
  const unlessSent = (name: "setHeader" | "appendHeader" | "removeHeader" | "setHeaders") => {
    const set: unknown = response[name];
    const guarded = (...args: unknown[]): unknown => {
      if (sent.head !== null) throw headersSent(name);
      return Reflect.apply(set as () => unknown, response, args);
    };
    return [name, guarded] as const;
  };
  const callback = (args: readonly unknown[]) =>
    args.find((one) => typeof one === "function") as (() => void) | undefined;
  return {
    get headersSent() {
      return sent.head !== null;
    },
    // Session and compression middleware checks Node's internal names, because it runs before `writeHead`.
    get _header() {
      return sent.head === null ? null : "HTTP/1.1";
    },
    _implicitHeader: () => response.writeHead(response.statusCode),
    ...Object.fromEntries((["setHeader", "appendHeader", "removeHeader", "setHeaders"] as const).map(unlessSent)),
    writeHead(status: number, ...rest: unknown[]) {
      if (sent.head !== null) throw headersSent("writeHead");
      response.statusCode = status;
      setAll(response, rest.find((one) => typeof one === "object" && one !== null) ?? {});
      sent.head = { status: response.statusCode, headers: ownHeaders(before, asHeaders(response.getHeaders())) };
      return response;
    },
    write(chunk: unknown, ...rest: unknown[]) {
      take(chunk, rest[0]);
      const done = callback(rest);
      if (done !== undefined) queueMicrotask(done);
      return true;
    },
    end(...args: unknown[]) {
      const done = callback(args);
      if (done !== undefined) response.once("finish", done);
      take(args[0], args[1]);
      finish();
      return response;
    },
    flushHeaders: () => take(undefined, undefined),
    writeContinue() {},
    writeProcessing() {},
    writeEarlyHints() {},
    addTrailers() {},
  };
}

const headersSent = (name: string): Error =>
  Object.assign(new Error(`Cannot ${name} after the headers are sent.`), { code: "ERR_HTTP_HEADERS_SENT" });

/** Sets headers as `writeHead` accepts them: an object, or a list of names and values. */
function setAll(response: ServerResponse, given: object): void {
  if (!Array.isArray(given)) {
    for (const [name, value] of Object.entries(given)) response.setHeader(name, value);
    return;
  }
  const flat: unknown[] = given.flat();
  const pairs = flat.flatMap((name, at) => (at % 2 === 0 ? [[String(name), String(flat[at + 1])] as const] : []));
  for (const [name] of pairs) response.removeHeader(name);
  for (const [name, value] of pairs) response.appendHeader(name, value);
}

function answerOf({ head, chunks }: Sent): Response {
  const { status, headers } = head ?? { status: 500, headers: new Headers() };
  return new Response(WITHOUT_BODY.has(status) ? null : joined(chunks), { status, headers });
}

/** Statuses whose responses have no body (the Fetch standard's null body statuses). */
const WITHOUT_BODY = new Set([204, 205, 304]);

const failure = (error: string): Response => Response.json({ error }, { status: 500 });

/** Node accepts statuses and headers that are not valid HTTP. */
function orFailure(answer: () => Response): Response {
  try {
    return answer();
  } catch (cause) {
    return failure(`The merchant's response is not valid: ${String(cause)}`);
  }
}

const encoded = (text: string, encoding: unknown): Uint8Array =>
  Buffer.from(text, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8");

function asHeaders(given: NodeJS.Dict<number | string | string[]>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(given))
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) headers.append(name, String(one));
  return headers;
}

/** Restores the earlier headers, except those that the handlers removed. */
function resetHeaders(response: ServerResponse, before: NodeJS.Dict<number | string | string[]>): void {
  for (const name of response.getHeaderNames()) if (!(name in before)) response.removeHeader(name);
  for (const [name, value] of Object.entries(before))
    if (value !== undefined && response.hasHeader(name)) response.setHeader(name, value);
}

const ENDINGS = ["finish", "close"] as const;
type Listeners = ReadonlyMap<string, readonly unknown[]>;

const listenersOf = (response: ServerResponse): Listeners =>
  new Map(ENDINGS.map((event) => [event, response.rawListeners(event)]));

/** Calls only the listeners that have been added since. */
function announce(response: ServerResponse, events: readonly string[], earlier: Listeners): void {
  for (const event of events) {
    const left = [...(earlier.get(event) ?? [])];
    for (const listener of response.rawListeners(event)) {
      const at = left.indexOf(listener);
      if (at >= 0) left.splice(at, 1);
      else {
        response.off(event, listener as () => void);
        Reflect.apply(listener, response, []);
      }
    }
  }
}
