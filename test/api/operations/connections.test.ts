import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createPeers } from "../../../api/platform/http/peers.ts";
import { type AddressLimit, createHttpServer, listen } from "../../../api/platform/http/server.ts";

// Real sockets, with limits short enough for a test to wait for.

const times = { headersMs: 300, requestMs: 600, keepAliveMs: 200, answerMs: 400, lingerMs: 100, sweepMs: 50 };
/** The longest of the limits, with a margin for a busy machine. */
const SOON_MS = 5_000;
const LARGE = "x".repeat(32 * 1024 * 1024);
const REQUEST = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

let server: ReturnType<typeof createHttpServer>;
let port: number;
const sockets: Socket[] = [];

async function start(perAddress: AddressLimit | null = null) {
  server = createHttpServer(
    async (request) => {
      if (request.method === "POST") return new Response(await request.text().catch(() => "cut off"));
      return new Response(new URL(request.url).pathname === "/large" ? LARGE : "hello");
    },
    { times, perAddress },
  );
  port = await listen([server], 0, "127.0.0.1");
}
beforeEach(() => start());
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.closeAllConnections();
  server.close();
});

/** Opens a client connection that never closes its end. */
async function open(localAddress = "127.0.0.1"): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", localAddress, allowHalfOpen: true });
  socket.on("error", () => undefined);
  sockets.push(socket);
  await once(socket, "connect");
  return socket;
}

const connections = () => new Promise<number>((done) => server.getConnections((_, count) => done(count)));
const closedSoon = () => expect.poll(connections, { timeout: SOON_MS, interval: 20 }).toBe(0);

/** Sends the bytes repeatedly until the server ends the connection. */
async function dripping(socket: Socket, bytes: string) {
  const timer = setInterval(() => socket.writable && socket.write(bytes), 60);
  await closedSoon().finally(() => clearInterval(timer));
}

describe("Connections that the server ends", () => {
  test("A connection that sends nothing gets a 408 that names the limit, and is closed", async () => {
    const socket = await open();
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    await closedSoon();
    const text = Buffer.concat(chunks).toString();
    expect(text).toMatch(/^HTTP\/1\.1 408 /);
    expect(text).toMatch(/"code":"request_timeout"/);
    expect(text).toMatch(/headers have 0.3 seconds/);
  });

  test.each([
    ["sends its headers byte by byte", "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", "a"],
    ["never finishes its body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", "a"],
    ["sends empty lines after a response", REQUEST, "\r\n"],
  ])("A connection that %s is closed", async (_, begun, repeated) => {
    const socket = await open();
    socket.resume().write(begun);
    await dripping(socket, repeated);
  });

  test("A connection that is idle after a response is closed", async () => {
    const socket = await open();
    socket.write(REQUEST);
    expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1\.1 200/);
    await closedSoon();
  });

  test("A connection that sent invalid HTTP and does not close its end is closed", async () => {
    const socket = await open();
    socket.resume().write("no HTTP at all\r\n\r\n");
    await closedSoon();
  });

  test("A connection that does not read its response is closed", async () => {
    const socket = await open();
    socket.pause().write("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    await expect.poll(connections, { timeout: SOON_MS, interval: 20 }).toBe(1);
    await closedSoon();
  });

  test("The server accepts new connections after a flood of silent ones", async () => {
    server.maxConnections = 20;
    await Promise.all(Array.from({ length: 20 }, () => open()));
    await closedSoon();
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    expect(await answer.text()).toBe("hello");
  });
});

test("A connection beyond one address's limit is closed, other addresses are accepted, and a closed connection frees a slot", async () => {
  server.close();
  await start({ most: 3, clientOf: (address) => (address === "127.0.0.1" ? null : address) });
  const answered = (socket: Socket) =>
    new Promise<boolean>((resolve) => {
      if (socket.closed) return resolve(false);
      const isRefused = () => resolve(false);
      socket.once("close", isRefused).once("end", isRefused);
      socket.once("data", () => resolve(true)).write(REQUEST);
    });
  const crowd = await Promise.all([1, 2, 3].map(() => open("127.0.0.2")));
  expect(await answered(await open("127.0.0.2"))).toBe(false);
  expect(await answered(await open("127.0.0.3"))).toBe(true);
  for (let count = 0; count < 5; count++) expect(await answered(await open("127.0.0.1"))).toBe(true);
  crowd[0]?.destroy();
  await expect.poll(async () => answered(await open("127.0.0.2")), { timeout: SOON_MS }).toBe(true);
});

test("Connections from this machine and from trusted proxies are not counted, and an IPv6 network counts as one client", () => {
  const { connectionOf } = createPeers(["10.0.0.0/8", "2001:db8:9::1"]);
  for (const address of ["127.0.0.1", "::ffff:127.0.0.1", "::1", "10.1.2.3", "::ffff:10.1.2.3", "2001:db8:9::1"])
    expect(connectionOf(address)).toBeNull();
  expect(connectionOf("::ffff:203.0.113.9")).toBe("203.0.113.9");
  expect(connectionOf("2001:db8:1:2:3::4")).toBe(connectionOf("2001:db8:1:2::5"));
});
