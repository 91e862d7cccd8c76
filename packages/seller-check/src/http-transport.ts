import { lookup as systemLookup } from "node:dns";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { LookupFunction } from "node:net";
import { promisify } from "node:util";
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import type { Answer, HttpRequest, Transport } from "./exam/exchange.ts";

/** The longest wait for a response, in milliseconds. */
const ANSWERS_WITHIN_MS = 30_000;
/** The largest response that is read, in bytes. */
const MOST_BYTES = 1_048_576;

export interface TransportSettings {
  /** Resolves names, by default as the system does. Not called for literal addresses. */
  readonly lookup?: LookupFunction;
  /** The longest time for one response, up to its last byte, in milliseconds. */
  readonly withinMs?: number;
  /** Ends every request when it aborts. */
  readonly signal?: AbortSignal;
  /** Sent as `User-Agent`. */
  readonly userAgent?: string;
}

/** Returns a transport over HTTP/1.1 that opens a new connection for each request. */
export const httpTransport = ({
  lookup = systemLookup,
  withinMs = ANSWERS_WITHIN_MS,
  signal,
  userAgent,
}: TransportSettings = {}): Transport => ({
  send: (request) =>
    new Promise<Answer>((resolve, reject) => {
      const sending = begin(request, { lookup, withinMs, signal, userAgent, fail: reject });
      sending.on("response", (response) => {
        const parts: Buffer[] = [];
        let bytes = 0;
        response.on("data", (part: Buffer) => {
          bytes += part.length;
          parts.push(part);
          if (bytes > MOST_BYTES) sending.destroy(new Error(`the answer has more than ${MOST_BYTES} bytes`));
        });
        response.on("error", reject);
        response.on("end", () => {
          const headers = Object.entries(response.headers).map(([name, value]) => [name, [value].flat().join(", ")]);
          const coding = response.headers["content-encoding"];
          try {
            const body = decoded(Buffer.concat(parts), coding);
            resolve({ status: response.statusCode ?? 0, headers: Object.fromEntries(headers), body });
          } catch {
            reject(new Error(`the answer is not ${coding}, or has more than ${MOST_BYTES} bytes`));
          }
        });
      });
    }),
  sendAndHangUp: (request) =>
    new Promise<void>((resolve, reject) => {
      let isSent = false;
      const sending = begin(request, {
        lookup,
        withinMs,
        signal,
        userAgent,
        fail: (error) => (isSent ? resolve() : reject(error)),
      });
      sending.on("finish", () => {
        isSent = true;
        // The request has been passed to the system; closing sends it, then the end of the connection.
        const { socket } = sending;
        const hangUp = () => sending.destroy();
        if (socket === null || socket.connecting) sending.once("socket", (late) => late.once("connect", hangUp));
        else socket.write("", hangUp);
      });
      sending.on("close", resolve);
    }),
  async families(url) {
    const host = new URL(url).hostname.replace(/^\[(.*)\]$/, "$1");
    const addresses = await promisify(lookup)(host, { all: true }).catch(() => []);
    return Array.isArray(addresses) ? [...new Set(addresses.map(({ family }) => (family === 6 ? 6 : 4)))] : [];
  },
});

const DECODERS = { gzip: gunzipSync, "x-gzip": gunzipSync, deflate: inflateSync, br: brotliDecompressSync } as const;

/** Decodes the codings that buyers support. Any other remains unchanged. */
function decoded(body: Buffer, coding: string | undefined): Buffer {
  const name = coding?.trim().toLowerCase() ?? "";
  if (body.length === 0 || !Object.hasOwn(DECODERS, name)) return body;
  return DECODERS[name as keyof typeof DECODERS](body, { maxOutputLength: MOST_BYTES });
}

interface Sending extends Omit<Required<TransportSettings>, "signal" | "userAgent"> {
  readonly signal: AbortSignal | undefined;
  readonly userAgent: string | undefined;
  readonly fail: (error: Error) => void;
}

function begin({ method, url, headers, body, family }: HttpRequest, settings: Sending) {
  const { lookup, withinMs, signal, userAgent, fail } = settings;
  const options = {
    method,
    headers: {
      accept: "*/*",
      "accept-encoding": "gzip, deflate, br",
      ...(userAgent === undefined ? {} : { "user-agent": userAgent }),
      ...headers,
      // Without it, Node sends the body of some methods unframed, and a server reads it as a second request.
      ...(body === null ? {} : { "content-length": `${Buffer.byteLength(body)}` }),
    },
    agent: false,
    family,
    lookup,
    ...(signal === undefined ? {} : { signal }),
  } as const;
  const sending = (url.startsWith("https:") ? requestHttps : requestHttp)(url, options);
  sending.on("error", fail);
  const late = setTimeout(
    () => sending.destroy(new Error(`no whole answer within ${withinMs / 1000} seconds`)),
    withinMs,
  );
  sending.on("close", () => {
    clearTimeout(late);
    // No effect after a response. A server that switches protocols sends none, and causes no error.
    fail(new Error("the connection was closed before an answer"));
  });
  sending.end(body ?? undefined);
  return sending;
}
