import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createAdaptorServer } from "@hono/node-server";
import { PROBLEMS, problemBody } from "../../kernel/errors.ts";

type Fetch = Parameters<typeof createAdaptorServer>[0]["fetch"];

/** Large enough for a payment header over our own limit, so that it gets our answer instead of a dropped connection. */
const MAX_HEADER_BYTES = 96 * 1024;

/** The pending answers of each server. */
const owed = new WeakMap<Server, Set<ServerResponse>>();

/** An HTTP server with limits for slow and flooding clients. */
export function createHttpServer(fetch: Fetch): Server {
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
      headersTimeout: 15_000,
      requestTimeout: 30_000,
      keepAliveTimeout: 10_000,
    },
  }) as Server;
  server.maxConnections = 4_096;
  server.on("clientError", refuse);
  const answers = new Set<ServerResponse>();
  owed.set(server, answers);
  server.on("request", (_: IncomingMessage, answer: ServerResponse) => {
    answers.add(answer);
    answer.once("close", () => answers.delete(answer));
  });
  return server;
}

const LOOK_EVERY_MS = 25;

/** Refuses new connections, waits until every request received has been answered, then closes what is still open. */
export async function drain(servers: readonly Server[]): Promise<void> {
  for (const server of servers) server.close();
  while (servers.some((server) => (owed.get(server)?.size ?? 0) > 0)) await sleep(LOOK_EVERY_MS);
  for (const server of servers) server.closeAllConnections();
}

/** Requests the parser rejects never reach the application; answer them in its format anyway. */
function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const tooLarge = error.code === "HPE_HEADER_OVERFLOW";
  const code = tooLarge ? "headers_too_large" : "malformed_request";
  const detail = tooLarge
    ? `The headers exceed the limit of ${MAX_HEADER_BYTES} bytes.`
    : "The request is not valid HTTP/1.1.";
  const body = JSON.stringify(problemBody(code, { detail }, "none"));
  const { status, title } = PROBLEMS[code];
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nContent-Type: application/problem+json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
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

const listenOn = (server: Server, port: number, host: string | undefined): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, ...(host === undefined ? {} : { host }) }, () => {
      server.removeListener("error", reject);
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
