import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createAdaptorServer } from "@hono/node-server";
import { EVERY_ANSWER, PROBLEMS, problemBody } from "./errors.ts";

/** Time limits in milliseconds. */
export interface ConnectionTimes {
  /** For a request's headers, from the connection's start or the end of the previous answer. */
  readonly headersMs: number;
  /** For the whole request. */
  readonly requestMs: number;
  readonly keepAliveMs: number;
  /** For the client to receive an answer whose headers were sent. */
  readonly answerMs: number;
  /** Between a refusal and the end of its connection. */
  readonly lingerMs: number;
  /** The interval between checks of these limits. */
  readonly sweepMs: number;
}

const TIMES: ConnectionTimes = {
  headersMs: 15_000,
  requestMs: 30_000,
  keepAliveMs: 10_000,
  answerMs: 120_000,
  lingerMs: 1_000,
  sweepMs: 1_000,
};

/** The limit of open connections per client. */
export interface AddressLimit {
  readonly most: number;
  /** Returns the client of a connection; null for one that is not counted. */
  readonly clientOf: (address: string) => string | null;
}

interface Connection {
  readonly client: string | null;
  /** The time since which no request is under way. */
  idleSince: number;
  /** The incomplete answers, each with the time at which its headers were first seen as sent. */
  readonly answers: Map<ServerResponse, number | null>;
}

/** The open connections of one server. */
export interface Connections {
  /** Returns the number of unanswered requests. */
  readonly pending: () => number;
  /** Whether an answer was sent in part. */
  readonly isAnswering: (socket: Socket) => boolean;
}

/**
 * Ends connections that Node's own timeouts leave open. Bytes between requests restart or disable its idle timer, and
 * it waits for slow readers without limit.
 */
function watchConnections(server: Server, times: ConnectionTimes, limit: AddressLimit | null): Connections {
  const connections = new Map<Socket, Connection>();
  const counts = new Map<string, number>();
  const count = (client: string | null, change: 1 | -1): number => {
    if (client === null) return 0;
    const open = (counts.get(client) ?? 0) + change;
    if (open > 0) counts.set(client, open);
    else counts.delete(client);
    return open;
  };
  server.on("connection", (socket: Socket) => {
    const client = limit?.clientOf(socket.remoteAddress ?? "") ?? null;
    connections.set(socket, { client, idleSince: performance.now(), answers: new Map() });
    socket.once("close", () => {
      connections.delete(socket);
      count(client, -1);
    });
    if (count(client, 1) > (limit?.most ?? 0) && client !== null) socket.destroy();
  });
  server.on("request", ({ socket }: IncomingMessage, answer: ServerResponse) => {
    const connection = connections.get(socket);
    if (connection === undefined) return;
    connection.answers.set(answer, null);
    answer.once("close", () => {
      connection.answers.delete(answer);
      connection.idleSince = performance.now();
    });
  });
  const sweep = setInterval(() => {
    const now = performance.now();
    for (const [socket, connection] of connections) if (isOver(connection, now, times)) socket.destroy();
  }, times.sweepMs).unref();
  server.once("close", () => clearInterval(sweep));
  return {
    pending: () => [...connections.values()].reduce((sum, { answers }) => sum + answers.size, 0),
    isAnswering: (socket) => [...(connections.get(socket)?.answers.keys() ?? [])].some((answer) => answer.headersSent),
  };
}

/** Whether a time limit has passed. While a handler works, its own limits apply. */
function isOver({ answers, idleSince }: Connection, now: number, { headersMs, lingerMs, answerMs }: ConnectionTimes) {
  // Node refuses late headers first, with an answer.
  if (answers.size === 0) return now - idleSince > headersMs + 2 * lingerMs;
  for (const [answer, since] of answers) if (since === null && answer.headersSent) answers.set(answer, now);
  return [...answers.values()].some((since) => since !== null && now - since > answerMs);
}

type Fetch = Parameters<typeof createAdaptorServer>[0]["fetch"];

/** Large enough for a payment header over our own limit, so that it gets our answer instead of a dropped connection. */
const MAX_HEADER_BYTES = 96 * 1024;

const connectionsOf = new WeakMap<Server, Connections>();
const stopping = new WeakSet<Server>();

export interface HttpServerLimits {
  readonly times?: Partial<ConnectionTimes>;
  /** Null, the default, means that connections are not counted. */
  readonly perAddress?: AddressLimit | null;
}

/** Creates an HTTP server with limits for slow and flooding clients. */
export function createHttpServer(fetch: Fetch, { times: given, perAddress = null }: HttpServerLimits = {}): Server {
  const times = { ...TIMES, ...given };
  const server = createAdaptorServer({
    // For requests of HTTP/1.0 without a host. It is never part of a published URL.
    hostname: "localhost",
    async fetch(request, env) {
      const response = await fetch(request, env);
      // The client connects to another process next.
      if (stopping.has(server)) env.outgoing.setHeader("connection", "close");
      return response;
    },
    serverOptions: {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: times.headersMs,
      requestTimeout: times.requestMs,
      keepAliveTimeout: times.keepAliveMs,
      connectionsCheckingInterval: times.sweepMs,
    },
  }) as Server;
  server.maxConnections = 4_096;
  const connections = watchConnections(server, times, perAddress);
  connectionsOf.set(server, connections);
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === "ECONNRESET" || !socket.writable || connections.isAnswering(socket))
      return void socket.destroy();
    refuse(error, socket, times);
  });
  return server;
}

const LOOK_EVERY_MS = 25;

/**
 * Stops the servers without losing a request. For `openForMs` they accept connections, so that a load balancer can
 * notice, and close each after one answer. Then they refuse new ones, answer every request received, and close the
 * rest.
 */
export async function drain(servers: readonly Server[], openForMs = 0): Promise<void> {
  for (const server of servers) stopping.add(server);
  if (openForMs > 0) await sleep(openForMs);
  for (const server of servers) server.close();
  while (servers.some((server) => (connectionsOf.get(server)?.pending() ?? 0) > 0)) await sleep(LOOK_EVERY_MS);
  for (const server of servers) server.closeAllConnections();
}

const COMMON_HEADERS = EVERY_ANSWER.map(([name, value]) => `${name}: ${value}\r\n`).join("");

/**
 * Answers requests that the parser rejects, which never reach the application, in the application's format. A client
 * that does not close its end afterwards is cut off.
 */
function refuse({ code: cause }: NodeJS.ErrnoException, socket: Socket, times: ConnectionTimes): void {
  const { code, detail } = refusalOf(cause, times);
  const body = JSON.stringify(problemBody(code, { detail }, "none"));
  const { status, title } = PROBLEMS[code];
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\n${COMMON_HEADERS}Content-Type: application/problem+json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
  const cut = setTimeout(() => socket.destroy(), times.lingerMs);
  socket.once("close", () => clearTimeout(cut));
}

function refusalOf(cause: string | undefined, { headersMs, requestMs }: ConnectionTimes) {
  if (cause === "HPE_HEADER_OVERFLOW")
    return { code: "headers_too_large", detail: `The headers exceed the limit of ${MAX_HEADER_BYTES} bytes.` } as const;
  if (cause === "ERR_HTTP_REQUEST_TIMEOUT") {
    const [headers, whole] = [headersMs / 1_000, requestMs / 1_000];
    const detail = `The request did not arrive in time: its headers have ${headers} seconds, and all of it has ${whole}.`;
    return { code: "request_timeout", detail } as const;
  }
  return { code: "malformed_request", detail: "The request is not valid HTTP/1.1." } as const;
}

/**
 * Listens on every address, or for `localhost` on both loopbacks. Rejects with the system's error if the port is taken.
 */
export async function listen(servers: readonly Server[], port: number, host: string | undefined): Promise<number> {
  const hosts = host === "localhost" ? ["127.0.0.1", "::1"] : [host];
  let bound = port;
  for (const [index, address] of hosts.entries()) {
    const server = servers[index];
    if (server === undefined) break;
    try {
      bound = await listenOn(server, bound, address);
    } catch (error) {
      // A machine without IPv6 has only one loopback.
      if (index === 0 || !["EADDRNOTAVAIL", "EAFNOSUPPORT"].includes((error as NodeJS.ErrnoException).code ?? ""))
        throw error;
    }
  }
  return bound;
}

async function listenOn(server: Server, port: number, host: string | undefined): Promise<number> {
  server.listen({ port, ...(host === undefined ? {} : { host }) });
  await once(server, "listening");
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : port;
}
