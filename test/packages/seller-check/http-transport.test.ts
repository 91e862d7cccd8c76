import { createServer as createHttpServer } from "node:http";
import { createServer, type Socket } from "node:net";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { httpTransport } from "../../../packages/seller-check/src/http-transport.ts";
import { forFile } from "../../support/for-file.ts";

/** Serves whatever `speak` writes to a connection after a request's head. @returns its URL */
async function serveRaw(speak: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    let head = "";
    socket.on("data", (data) => {
      const isNew = !head.includes("\r\n\r\n");
      head += data.toString("latin1");
      if (isNew && head.includes("\r\n\r\n")) speak(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  await forFile(server);
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/haiku`;
}

const asked = async (speak: (socket: Socket) => void, withinMs = 5_000) => {
  const url = await serveRaw(speak);
  return httpTransport({ withinMs }).send({ method: "GET", url, headers: {}, body: null });
};
const writing =
  (...parts: readonly (string | Buffer)[]) =>
  (socket: Socket) => {
    for (const part of parts) socket.write(part);
    socket.end();
  };
const text = (body: Uint8Array) => Buffer.from(body).toString();
const coded = (coding: string, body: Buffer) =>
  writing(`HTTP/1.1 200 OK\r\ncontent-encoding: ${coding}\r\ncontent-length: ${body.length}\r\n\r\n`, body);

test.each<[string, (socket: Socket) => void, readonly [number, string]]>([
  ["HTTP/1.0, to the end of the connection", writing("HTTP/1.0 402 Pay\r\n\r\n", "haiku"), [402, "haiku"]],
  [
    "chunks",
    writing("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "3\r\nhai\r\n", "2\r\nku\r\n0\r\n\r\n"),
    [200, "haiku"],
  ],
  [
    "a 100 and a 103 first",
    writing(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\n\r\n",
      "HTTP/1.1 202 OK\r\ncontent-length: 5\r\n\r\nhaiku",
    ),
    [202, "haiku"],
  ],
  ["gzip", coded("gzip", gzipSync("haiku")), [200, "haiku"]],
  ["GZIP in capitals", coded("GZIP", gzipSync("haiku")), [200, "haiku"]],
  ["br", coded("br", brotliCompressSync("haiku")), [200, "haiku"]],
  ["deflate", coded("deflate", deflateSync("haiku")), [200, "haiku"]],
  ["an unknown coding", coded("toString", Buffer.from("haiku")), [200, "haiku"]],
  ["a coding and no body", writing("HTTP/1.1 204 No\r\ncontent-encoding: gzip\r\n\r\n"), [204, ""]],
  [
    "a redirect, which is not followed",
    writing("HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n"),
    [302, ""],
  ],
])("A response with %s is read", async (_, speak, read) => {
  const { status, body } = await asked(speak);
  expect([status, text(body)]).toEqual(read);
});

test("Several lines of one header are joined into one list", async () => {
  const head = "HTTP/1.1 200 OK\r\ncache-control: public\r\nx-a: 1\r\nCACHE-CONTROL: no-store\r\ncontent-length: 0\r\n";
  const { headers } = await asked(writing(`${head}__proto__: x\r\n\r\n`));
  expect(headers["cache-control"]).toBe("public, no-store");
});

test("A slow body is read until the timeout and no longer", async () => {
  let drops = 0;
  const slow = (socket: Socket) => {
    socket.write("HTTP/1.1 200 OK\r\n\r\n");
    const drip = setInterval(() => (socket.destroyed ? clearInterval(drip) : socket.write(`${++drops}`)), 20);
  };
  await expect(asked(slow, 300)).rejects.toThrow("no whole answer within 0.3 seconds");
  expect(drops).toBeGreaterThan(0);
});

const MEBIBYTE = 1_048_576;

test.each<[string, (socket: Socket) => void, RegExp]>([
  [
    "an endless body",
    (socket) => {
      const more = () => socket.destroyed || socket.write(Buffer.alloc(65_536), () => setImmediate(more));
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      more();
    },
    /more than 1048576 bytes/,
  ],
  ["a gzip bomb", coded("gzip", gzipSync(Buffer.alloc(20 * MEBIBYTE))), /is not gzip, or has more than/],
  ["a br bomb", coded("br", brotliCompressSync(Buffer.alloc(20 * MEBIBYTE))), /is not br, or has more than/],
  ["invalid gzip", coded("gzip", Buffer.from("haiku")), /is not gzip/],
  [
    "endless headers",
    (socket) => {
      const more = () => socket.destroyed || socket.write(`x-more: ${"x".repeat(4_000)}\r\n`, () => setImmediate(more));
      socket.write("HTTP/1.1 200 OK\r\n");
      more();
    },
    /Header overflow/,
  ],
  ["U+0000 in a header", writing("HTTP/1.1 200 OK\r\nx-a: a\u0000b\r\n\r\n"), /Parse Error/],
  ["two lengths", writing("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"), /Parse Error/],
  [
    "a switch of protocols",
    writing("HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
    /closed before/,
  ],
  ["nothing", (socket) => socket.end(), /socket hang up/],
  ["no HTTP", writing("SSH-2.0-OpenSSH_9\r\n"), /Parse Error/],
])("A connection with %s gives no response", async (_, speak, message) => {
  await expect(asked(speak)).rejects.toThrow(message);
});

test.each(["GET", "POST", "DELETE", "OPTIONS", "PUT"])(
  "The body of a %s is framed, so no server reads it as a second request",
  async (method) => {
    const heads: string[] = [];
    const server = createHttpServer((request, response) => {
      heads.push(`${request.method} ${request.url} ${request.headers["content-length"]}`);
      request.resume().on("end", () => response.end("haiku"));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    await forFile(server);
    const url = `http://127.0.0.1:${(server.address() as { port: number }).port}/haiku`;
    const body = "GET /second HTTP/1.1\r\nhost: é\r\n\r\n";
    const transport = httpTransport({ withinMs: 5_000 });
    const answer = await transport.send({ method, url, headers: {}, body });
    expect([answer.status, text(answer.body)]).toEqual([200, "haiku"]);
    await transport.sendAndHangUp({ method, url, headers: {}, body });
    expect(new Set(heads)).toEqual(new Set([`${method} /haiku ${Buffer.byteLength(body)}`]));
  },
);
