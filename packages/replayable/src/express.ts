import type { IncomingMessage, ServerResponse } from "node:http";
import { joined } from "../../escrow/src/bytes.ts";
import { ownHeaders } from "../../escrow/src/own-headers.ts";
import type { Answer } from "./answer-store.ts";
import { createReplays, MAX_BYTES, type ReplayableOptions, type Served } from "./replays.ts";

export type { ReplayableOptions } from "./replays.ts";

/** The parts of an Express request that are used. */
export interface ExpressRequest extends IncomingMessage {
  readonly protocol: string;
  readonly originalUrl: string;
  /** The body as parsed by earlier middleware. */
  readonly body?: unknown;
}

type Next = (error?: unknown) => void;

/** Middleware of Express. */
export type ExpressMiddleware = (request: never, response: never, next: Next) => unknown;

/**
 * Wraps stock x402 middleware of Express: `app.use(replayable(paymentMiddleware(…)))`. The response to a settled
 * payment is stored, and the same payment for the same request gets it again. Copies of a payment wait for the first
 * one.
 */
export function replayable(
  middleware: ExpressMiddleware,
  options: ReplayableOptions = {},
): (request: ExpressRequest, response: ServerResponse, next: Next) => void {
  const replays = createReplays(options);
  return (request, response, next) => {
    const { method = "GET", protocol, originalUrl, headers } = request;
    const answered = replays({
      method,
      url: `${protocol}://${headers.host ?? "localhost"}${originalUrl}`,
      header: (name) => headers[name]?.toString(),
      body: () => bodyOf(request),
      serve(how) {
        if (how === "unpaid") {
          delete headers["payment-signature"];
          delete headers["x-payment"];
        }
        const sent = recorded(response);
        void Promise.resolve(middleware(request as never, response as never, next)).catch(next);
        return sent;
      },
    });
    answered.then((replay) => (replay === null ? undefined : send(response, replay))).catch(next);
  };
}

/**
 * Records the response while it is sent unchanged, and resolves when it has been sent. Headers that were added earlier,
 * or by hooks while it is sent, belong to this request and are not recorded.
 */
function recorded(response: ServerResponse): Promise<Served> {
  const { writeHead, write, end } = response;
  const before = headersOf(response);
  let head: Pick<Answer, "status" | "headers"> | null = null;
  const noteHead = () => {
    head ??= { status: response.statusCode, headers: [...ownHeaders(before, headersOf(response))] };
    return head;
  };
  const chunks: Uint8Array[] = [];
  let size = 0;
  const note = (chunk: unknown, encoding: unknown) => {
    if (typeof chunk !== "string" && !(chunk instanceof Uint8Array)) return;
    const bytes =
      typeof chunk === "string"
        ? Buffer.from(chunk, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8")
        : chunk;
    size += bytes.length;
    // One byte too many is enough to detect it.
    if (size - bytes.length <= MAX_BYTES) chunks.push(bytes);
  };
  return new Promise((resolve) => {
    Object.assign(response, {
      writeHead(status: number, ...rest: unknown[]) {
        response.statusCode = status;
        setAll(response, rest.find((one) => typeof one === "object" && one !== null) ?? {});
        noteHead();
        const message = rest.filter((one) => typeof one === "string");
        return Reflect.apply(writeHead, response, [status, ...message]);
      },
      write(...args: unknown[]) {
        noteHead();
        note(args[0], args[1]);
        return Reflect.apply(write, response, args);
      },
      end(...args: unknown[]) {
        note(args[0], args[1]);
        const { status, headers } = noteHead();
        const ended = Reflect.apply(end, response, args);
        const answer: Answer = { status, headers, body: joined(chunks) };
        resolve({
          status,
          header: (wanted) => headers.find(([name]) => name === wanted)?.[1],
          read: async () => answer,
        });
        return ended;
      },
    });
  });
}

/** Sets headers as `writeHead` accepts them: an object, or a list of names and values. */
function setAll(response: ServerResponse, given: object): void {
  const flat: unknown[] = Array.isArray(given) ? given.flat() : Object.entries(given).flat();
  const pairs = flat.flatMap((name, at) => (at % 2 === 0 ? [[String(name), flat[at + 1]] as const] : []));
  for (const [name] of pairs) response.removeHeader(name);
  for (const [name, value] of pairs)
    for (const one of Array.isArray(value) ? value : [value]) response.appendHeader(name, String(one));
}

function headersOf(response: ServerResponse): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(response.getHeaders()))
    for (const one of Array.isArray(value) ? value : [value]) headers.append(name, String(one));
  return headers;
}

async function send(response: ServerResponse, answer: Response): Promise<void> {
  const body = new Uint8Array(await answer.arrayBuffer());
  response.statusCode = answer.status;
  for (const [name, value] of answer.headers) if (name !== "set-cookie") response.setHeader(name, value);
  for (const cookie of answer.headers.getSetCookie()) response.appendHeader("set-cookie", cookie);
  response.end(body);
}

/**
 * Returns the whole body, which is put back for others; null if it is too large to compare, or its parser kept only a
 * part.
 */
async function bodyOf(request: ExpressRequest): Promise<Uint8Array<ArrayBuffer> | null> {
  const { headers, body } = request;
  if (headers["content-length"] === undefined && headers["transfer-encoding"] === undefined) return new Uint8Array();
  if (!request.readableDidRead) return received(request);
  if (body === undefined || /^multipart\//i.test(headers["content-type"] ?? "")) return null;
  const bytes = body instanceof Uint8Array ? body : new TextEncoder().encode(JSON.stringify(body));
  return bytes.length > MAX_BYTES ? null : new Uint8Array(bytes);
}

async function received(request: IncomingMessage): Promise<Uint8Array<ArrayBuffer> | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const take = () => {
    // Reading an empty stream that has ended would end it for others too.
    while (request.readableLength > 0 && size <= MAX_BYTES) {
      const chunk: unknown = request.read();
      if (chunk === null) return;
      const bytes = typeof chunk === "string" ? Buffer.from(chunk) : (chunk as Uint8Array);
      size += bytes.length;
      chunks.push(bytes);
    }
  };
  take();
  while (!request.complete && !request.destroyed && size <= MAX_BYTES) {
    await readable(request);
    take();
  }
  take();
  for (const chunk of chunks.toReversed()) request.unshift(chunk);
  return size > MAX_BYTES || request.destroyed ? null : joined(chunks);
}

const readable = (request: IncomingMessage): Promise<void> =>
  new Promise((resolve) => {
    const happened = () => {
      for (const event of ["readable", "close", "error"]) request.off(event, happened);
      resolve();
    };
    for (const event of ["readable", "close", "error"]) request.on(event, happened);
  });
