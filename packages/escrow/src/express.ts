import type { IncomingMessage, ServerResponse } from "node:http";
import { joined, MAX_BODY_BYTES } from "./delivery.ts";
import { createSeller, type SellerOptions } from "./seller.ts";
import type { Validate } from "./validate.ts";
import { dropConditions } from "./whole-request.ts";

/** What is used of a request of Express. */
export interface ExpressRequest extends IncomingMessage {
  readonly protocol: string;
  readonly originalUrl: string;
}

/** What is used of a response of Express. */
export interface ExpressResponse extends ServerResponse {
  locals: Record<string, unknown>;
}

type Next = (error?: unknown) => void;

export interface ExpressOptions<R extends ExpressRequest> extends SellerOptions {
  /**
   * Checks the input of a request before anything is held for it, paid or not. A refusal (400 to 499) is the answer, and
   * the buyer's signature is not used. It sees the body that `express.json()` has read, if that comes before.
   */
  readonly validate?: Validate<R>;
}

/**
 * Makes the rest of a route of Express an escrowed one:
 * `app.post("/haiku", escrowed(options), (request, response) => response.json(…))`. What the handlers send is kept back
 * until the arbiter has it. They find the payment's id in `response.locals.escrowPaymentId`.
 * @throws TypeError for an invalid price or `leastSecondsLeft`, or without a node to ask
 */
export function escrowed<R extends ExpressRequest = ExpressRequest>(
  options: ExpressOptions<R>,
): (request: R, response: ExpressResponse, next: Next) => void {
  const serve = createSeller(options);
  return (request, response, next) => {
    const { method = "GET", protocol, originalUrl, headers } = request;
    const header = headers["payment-signature"];
    const sale = {
      method,
      url: `${protocol}://${headers.host ?? "localhost"}${originalUrl}`,
      payment: Array.isArray(header) ? header.join() : header,
      validate: () => options.validate?.(request),
      run(id: string) {
        response.locals.escrowPaymentId = id;
        dropConditions(headers);
        return captured(response, next);
      },
    };
    serve(sale).then((answer) => send(response, answer), next);
  };
}

/** A response's status, headers and body, as its handlers send them, of which the client sees nothing yet. */
function captured(response: ExpressResponse, next: Next): Promise<Response> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  let hasClosed = false;
  const take = (chunk: unknown, encoding: unknown) => {
    if (typeof chunk !== "string" && !(chunk instanceof Uint8Array)) return;
    const bytes = typeof chunk === "string" ? encoded(chunk, encoding) : new Uint8Array(chunk);
    size += bytes.length;
    // One byte too many is enough to say so.
    if (size - bytes.length <= MAX_BODY_BYTES) chunks.push(bytes);
  };
  const { emit } = response;
  const showAgain = hideClosing(response);
  return new Promise((resolve, reject) => {
    Object.assign(response, {
      write(chunk: unknown, ...rest: unknown[]) {
        take(chunk, rest[0]);
        const done = rest.find((one) => typeof one === "function") as (() => void) | undefined;
        if (done !== undefined) queueMicrotask(done);
        return true;
      },
      end(...sent: unknown[]) {
        const done = sent.find((one) => typeof one === "function") as (() => void) | undefined;
        if (done !== undefined) response.once("finish", done);
        take(sent[0], sent[1]);
        for (const name of ["write", "end", "writeHead", "flushHeaders", "emit"])
          Reflect.deleteProperty(response, name);
        showAgain();
        if (hasClosed) response.emit("close");
        try {
          resolve(taken(response, chunks));
        } catch (cause) {
          reject(cause);
        }
        return response;
      },
      writeHead(status: number, ...rest: unknown[]) {
        response.statusCode = status;
        const given = rest.find((one) => typeof one === "object" && one !== null) ?? {};
        for (const [name, value] of Array.isArray(given) ? pairs(given) : Object.entries(given)) {
          response.setHeader(name, value as string | string[]);
        }
        return response;
      },
      flushHeaders() {},
      // A buyer that hangs up does not end the work: it gets the response with the same header.
      emit(event: string, ...rest: unknown[]) {
        if (event !== "close") return emit.call(response, event, ...rest);
        hasClosed = true;
        return true;
      },
    });
    next();
  });
}

/** Lets a response look open, as streams check, until the returned function is called. */
function hideClosing(response: ExpressResponse): () => void {
  const state = new Map(["destroyed", "_closed"].map((name) => [name, Reflect.get(response, name)]));
  for (const name of state.keys()) {
    const set = (value: unknown) => void state.set(name, value);
    Object.defineProperty(response, name, { configurable: true, enumerable: true, get: () => false, set });
  }
  return () => {
    for (const [name, value] of state) {
      Object.defineProperty(response, name, { configurable: true, enumerable: true, writable: true, value });
    }
  };
}

/** A flat list of names and values, as `writeHead` takes one. */
const pairs = (list: readonly unknown[]): (readonly [string, unknown])[] =>
  list.flatMap((name, at) => (at % 2 === 0 ? [[String(name), list[at + 1]] as const] : []));

const encoded = (text: string, encoding: unknown): Uint8Array =>
  encoding === "latin1" || encoding === "binary"
    ? Uint8Array.from(text, (char) => char.charCodeAt(0))
    : new TextEncoder().encode(text);

/** Statuses whose responses have no body (the Fetch standard's null body statuses). */
const WITHOUT_BODY = new Set([204, 205, 304]);

function taken(response: ExpressResponse, chunks: readonly Uint8Array[]): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(response.getHeaders())) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) headers.append(name, String(one));
  }
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  const status = response.statusCode;
  return new Response(WITHOUT_BODY.has(status) ? null : joined(chunks), { status, headers });
}

async function send(response: ExpressResponse, answer: Response): Promise<void> {
  response.statusCode = answer.status;
  for (const [name, value] of answer.headers) if (name !== "set-cookie") response.setHeader(name, value);
  const cookies = answer.headers.getSetCookie();
  if (cookies.length > 0) response.setHeader("set-cookie", cookies);
  response.end(new Uint8Array(await answer.arrayBuffer()));
}
