import type { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { override } from "./overrides.ts";
import { MAX_READ_BYTES, MAX_REQUEST_BYTES, requestTooLarge } from "./whole-request.ts";

/**
 * Reads a request's body to its end and puts it back, unless it has been read before. Returns a refusal if it is too
 * large.
 * @throws if the buyer hung up
 */
export async function receiveBody(request: IncomingMessage): Promise<Response | null> {
  const chunks: unknown[] = [];
  let size = 0;
  // A listener for `readable` would stop another reader.
  const isRead = request.readableFlowing === true;
  while (!request.complete && !request.destroyed) {
    const chunk: unknown = isRead ? null : request.read();
    if (chunk === null) {
      await first(request, [isRead ? "end" : "readable", "close", "error"]);
      continue;
    }
    size += (chunk as Uint8Array | string).length;
    if (size <= MAX_REQUEST_BYTES) chunks.push(chunk);
    if (size > MAX_READ_BYTES) break;
  }
  if (size > MAX_REQUEST_BYTES) return requestTooLarge();
  if (request.socket.destroyed || (request.destroyed && !request.readableEnded))
    throw new Error("The buyer hung up before anything was held.");
  for (const chunk of chunks.reverse()) request.unshift(chunk);
  return null;
}

const first = (request: IncomingMessage, events: readonly string[]): Promise<void> =>
  new Promise((resolve) => {
    const happened = () => {
      for (const event of events) request.off(event, happened);
      resolve();
    };
    for (const event of events) request.on(event, happened);
  });

/**
 * Hides the buyer's connection from the handlers of a request, so that they do not notice its end.
 * @param onEnd called if a handler itself ends the connection
 * @returns a function that restores the connection
 */
export function hideConnection(request: IncomingMessage, response: ServerResponse, onEnd: () => void): () => void {
  const socket = standIn(request.socket);
  socket.once("close", onEnd);
  const [showRequest, showResponse] = [hideFromRequest(request, socket), hideFromResponse(response, socket)];
  return () => {
    socket.off("close", onEnd);
    socket.destroy();
    showRequest();
    showResponse();
  };
}

/** Returns a socket that looks open, with the buyer's address, but is not connected. */
function standIn(real: Socket): Socket {
  const { remoteAddress, remotePort, remoteFamily, localAddress, localPort, localFamily } = real;
  const { encrypted, authorized, getPeerCertificate } = real as Socket & Record<string, unknown>;
  const facts = { remoteAddress, remotePort, remoteFamily, localAddress, localPort, localFamily };
  const tls = {
    ...{ encrypted, authorized },
    getPeerCertificate: (getPeerCertificate as (() => unknown) | undefined)?.bind(real),
  };
  const socket = new Socket();
  override(socket, encrypted === undefined ? facts : { ...facts, ...tls });
  socket.on("error", () => undefined);
  return socket;
}

function hideFromRequest(request: IncomingMessage, socket: Socket): () => void {
  const { destroy } = request;
  let reset: Error | undefined;
  const show = override(request, {
    socket,
    client: socket,
    // Cleared, so that `on-finished`, which Express uses, does not share its watcher of the real connection.
    __onFinished: undefined,
    destroy(error?: Error & { readonly code?: unknown }) {
      // Node's server destroys the request when its connection is gone.
      if (error?.code !== "ECONNRESET") return destroy.call(request, error);
      reset = error;
      return request;
    },
  });
  return () => {
    show();
    if (reset !== undefined) request.destroy(reset);
  };
}

function hideFromResponse(response: ServerResponse, socket: Socket): () => void {
  const { emit } = response;
  let { destroyed } = response;
  let hasClosed = false;
  const show = override(response, {
    socket,
    connection: socket,
    __onFinished: undefined,
    get closed() {
      return socket.destroyed;
    },
    get destroyed() {
      return socket.destroyed;
    },
    // Node's server sets this when the connection is gone.
    set destroyed(value: boolean) {
      destroyed = value;
    },
    destroy(error?: Error) {
      socket.destroy(error);
      return response;
    },
    emit(event: string, ...rest: unknown[]) {
      if (event !== "close") return emit.call(response, event, ...rest);
      hasClosed = true;
      return true;
    },
  });
  return () => {
    show();
    response.destroyed = destroyed;
    if (hasClosed) response.emit("close");
  };
}
