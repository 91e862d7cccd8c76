import type { IncomingMessage } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";

/** Tells clients apart. */
export interface Clients {
  /** The key that a client's requests are counted under. */
  clientOf(incoming: IncomingMessage): string;
}

/** Who sends a request; everybody whose connection is not known counts as one. */
export function clientOf(c: Context, clients: Clients): string {
  const { incoming } = (c.env ?? {}) as Partial<HttpBindings>;
  return incoming ? clients.clientOf(incoming) : "unknown";
}
