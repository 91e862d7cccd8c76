import type { IncomingMessage } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";

/** Tells clients apart. */
export interface Clients {
  /** The key that a client's requests are counted under. */
  clientOf(incoming: IncomingMessage): string;
}

/**
 * On whose behalf something is asked that all share: a client's key, or null for what is paid for and for our own work, which
 * comes first.
 */
export type Asker = string | null;

/** Who sends a request; everybody whose connection is not known counts as one. */
export function clientOf(c: Context, clients: Clients): string {
  const { incoming } = (c.env ?? {}) as Partial<HttpBindings>;
  return incoming ? clients.clientOf(incoming) : "unknown";
}

/**
 * What one owner has many addresses of: the /24 of an IPv4 address, the /48 of an IPv6 network. Anything else is a network of
 * its own.
 */
export function networkOf(client: string): string {
  if (/^\d+(\.\d+){3}$/.test(client)) return `${client.slice(0, client.lastIndexOf("."))}.0/24`;
  const groups = /^([0-9a-f]+:[0-9a-f]+:[0-9a-f]+):[0-9a-f]+::\/64$/.exec(client);
  return groups === null ? client : `${groups[1]}::/48`;
}
