import { once } from "node:events";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createAdaptorServer } from "@hono/node-server";
import { PROBLEMS, problemBody } from "./errors.ts";
import { type AddressLimit, type Connections, type ConnectionTimes, TIMES, watchConnections } from "./connections.ts";

type Fetch = Parameters<typeof createAdaptorServer>[0]["fetch"];

/** Large enough for a payment header over our own limit, so that it gets our answer instead of a dropped connection. */
const MAX_HEADER_BYTES = 96 * 1024;

const connectionsOf = new WeakMap<Server, Connections>();

export interface HttpServerLimits {
  readonly times?: Partial<ConnectionTimes>;
  /** Null, the default, counts nobody's connections. */
  readonly perAddress?: AddressLimit | null;
}

/** An HTTP server with limits for slow and flooding clients. */
export function createHttpServer(fetch: Fetch, { times: given, perAddress = null }: HttpServerLimits = {}): Server {
  const times = { ...TIMES, ...given };
  const server = createAdaptorServer({
    // For requests of HTTP/1.0 that name no host; nothing that is published comes from there.
    hostname: "localhost",
    async fetch(request, env) {
      const response = await fetch(request, env);
      // Once the server accepts no more connections, an open one closes after its answer and says so.
      if (!server.listening) env.outgoing.setHeader("connection", "close");
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

/** Refuses new connections, waits until every request received has been answered, then closes what is still open. */
export async function drain(servers: readonly Server[]): Promise<void> {
  for (const server of servers) server.close();
  while (servers.some((server) => (connectionsOf.get(server)?.pending() ?? 0) > 0)) await sleep(LOOK_EVERY_MS);
  for (const server of servers) server.closeAllConnections();
}

/**
 * Requests the parser rejects never reach the application; answer them in its format anyway. A client that does not close
 * its end then is cut off.
 */
function refuse({ code: cause }: NodeJS.ErrnoException, socket: Socket, times: ConnectionTimes): void {
  const { code, detail } = refusalOf(cause, times);
  const body = JSON.stringify(problemBody(code, { detail }, "none"));
  const { status, title } = PROBLEMS[code];
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nContent-Type: application/problem+json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
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

/** Listens on every address; `localhost` means both loopbacks. Rejects with the system's error if the port is taken. */
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
