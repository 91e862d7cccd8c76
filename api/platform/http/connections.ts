import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** In milliseconds. */
export interface ConnectionTimes {
  /** For a request's headers, from the connection's start or the end of the answer before. */
  readonly headersMs: number;
  /** For the whole request. */
  readonly requestMs: number;
  readonly keepAliveMs: number;
  /** For the client to take an answer whose headers were sent. */
  readonly answerMs: number;
  /** Between a refusal and the end of its connection. */
  readonly lingerMs: number;
  /** How often these limits are looked at. */
  readonly sweepMs: number;
}

export const TIMES: ConnectionTimes = {
  headersMs: 15_000,
  requestMs: 30_000,
  keepAliveMs: 10_000,
  answerMs: 120_000,
  lingerMs: 1_000,
  sweepMs: 1_000,
};

/** How many connections one client may have open. */
export interface AddressLimit {
  readonly most: number;
  /** Whose a connection is; null for one that is not counted. */
  readonly clientOf: (address: string) => string | null;
}

interface Connection {
  readonly client: string | null;
  /** Since when no request is under way. */
  idleSince: number;
  /** The answers that are not complete yet, and when their headers were first seen to be sent. */
  readonly answers: Map<ServerResponse, number | null>;
}

/** The open connections of one server. */
export interface Connections {
  /** How many requests are not answered yet. */
  readonly pending: () => number;
  /** Whether part of an answer was sent that is not complete. */
  readonly isAnswering: (socket: Socket) => boolean;
}

/**
 * Ends connections that node's own timeouts leave open: bytes between requests restart its idle timer or turn it off, and
 * it waits for readers without end.
 */
export function watchConnections(server: Server, times: ConnectionTimes, limit: AddressLimit | null): Connections {
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

/** While a handler works, its own limits count. */
function isOver({ answers, idleSince }: Connection, now: number, { headersMs, lingerMs, answerMs }: ConnectionTimes) {
  // Node refuses late headers first, with an answer.
  if (answers.size === 0) return now - idleSince > headersMs + 2 * lingerMs;
  for (const [answer, since] of answers) if (since === null && answer.headersSent) answers.set(answer, now);
  return [...answers.values()].some((since) => since !== null && now - since > answerMs);
}
