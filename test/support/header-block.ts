import { request } from "node:http";
import { text } from "node:stream/consumers";

/** An answer, and the bytes of its status line and headers as the server sent them. */
export interface Measured {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly headerBytes: number;
}

/** nginx reads a response's headers into 4 KB by default, and answers 502 to more. */
export const MOST_HEADER_BYTES = 4_000;

/** The bytes that these headers take, with what Node's server adds to each answer. */
export const headerBytesOf = (headers: Headers): number =>
  [...headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0) + ADDED_BY_NODE;

/** Status line, date, connection, keep-alive, content-length, x-powered-by. */
const ADDED_BY_NODE = 200;

/** Sends a request, and measures the answer's header block. */
export function measured(
  url: string,
  { method = "GET", headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Measured> {
  return new Promise((resolve, reject) => {
    const asking = request(url, { method, headers }, async (answer) => {
      const { statusCode: status = 0, statusMessage = "", rawHeaders } = answer;
      const pairs = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? ""] as const] : []));
      const lines = [`HTTP/1.1 ${status} ${statusMessage}`, ...pairs.map(([name, value]) => `${name}: ${value}`), ""];
      const headerBytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line, "latin1") + 2, 0);
      resolve({ status, headers: new Headers(pairs.map(([...pair]) => pair)), text: await text(answer), headerBytes });
    });
    asking.on("error", reject).end(body);
  });
}
