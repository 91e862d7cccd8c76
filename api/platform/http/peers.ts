import { AsyncLocalStorage } from "node:async_hooks";
import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import { ipv6Groups } from "../web/addresses.ts";

/** The origin of a request, as far as it can be trusted. */
export interface Peers {
  /**
   * Returns the key under which to count the request: the client's address or, for IPv6, its /64 network, which belongs
   * to one subscriber.
   */
  clientOf(incoming: IncomingMessage): string;
  /**
   * Returns the key under which to count a connection, as for requests; null for a trusted proxy, and for this machine.
   */
  connectionOf(address: string): string | null;
  /** Returns the id that a trusted proxy assigned; null if there is none, or if it is unfit for a log. */
  requestIdOf(incoming: IncomingMessage): string | null;
}

const WELL_FORMED_ID = /^[A-Za-z0-9._-]{8,128}$/;

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/**
 * Creates the peers.
 * @param trusted addresses and ranges (CIDR) of our reverse proxies, the only ones whose forwarding headers are
 * trusted
 */
export function createPeers(trusted: readonly string[]): Peers {
  const proxies = new BlockList();
  for (const range of trusted) {
    const [address = "", prefix] = range.split("/");
    if (prefix === undefined) proxies.addAddress(address, familyOf(address));
    else proxies.addSubnet(address, Number(prefix), familyOf(address));
  }
  const isProxy = (address: string): boolean => isIP(address) !== 0 && proxies.check(address, familyOf(address));
  return {
    clientOf({ socket, headers }) {
      const peer = plain(socket.remoteAddress ?? "unknown");
      // Each proxy appends the address that called it. From the end, the first that is not our proxy is the client.
      const clientIn = (hops: readonly string[]): string => {
        let client = peer;
        for (const hop of hops.toReversed()) {
          const address = isProxy(client) ? nodeAddress(hop) : null;
          if (address === null) break;
          client = address;
        }
        return client;
      };
      const { forwarded } = headers;
      const listed = headers["x-forwarded-for"];
      const chains = [
        ...(listed === undefined ? [] : [clientIn(String(listed).split(","))]),
        ...(forwarded === undefined ? [] : [clientIn(forwarded.split(",").map(forOf))]),
      ];
      // A proxy writes one header and may pass on the other as the client wrote it. If they differ, both are ignored.
      const client = new Set(chains).size === 1 ? (chains[0] ?? peer) : peer;
      return isIP(client) === 6 ? networkOf(client) : client;
    },
    connectionOf(address) {
      const peer = plain(address);
      if (isIP(peer) === 0 || isProxy(peer) || LOOPBACK.check(peer, familyOf(peer))) return null;
      return isIP(peer) === 6 ? networkOf(peer) : peer;
    },
    requestIdOf(incoming) {
      if (trusted.length === 0 || !isProxy(plain(incoming.socket.remoteAddress ?? ""))) return null;
      const id = incoming.headers["x-request-id"];
      return typeof id === "string" && WELL_FORMED_ID.test(id) ? id : null;
    },
  };
}

const familyOf = (address: string) => (isIP(address) === 6 ? "ipv6" : "ipv4");

/** Writes an IPv4 address that arrived over an IPv6 socket in plain IPv4 form. */
const plain = (address: string): string => address.replace(/^::ffff:(?=[\d.]+$)/i, "");

const NODE = /^"?(?:\[([\da-f:.]+)\]|(\d+\.\d+\.\d+\.\d+))(?::(?:\d{1,5}|_[\w.-]+))?"?$/i;

/**
 * Returns the address in a node's name, to which some proxies add a port, brackets for IPv6, or quotes. Null if there
 * is none.
 */
function nodeAddress(name: string): string | null {
  const text = name.trim();
  const [, bracketed, dotted] = NODE.exec(text) ?? [];
  const address = plain(bracketed ?? dotted ?? text);
  return isIP(address) === 0 ? null : address;
}

/** Returns the `for` of an element of `Forwarded` (RFC 7239, section 4); empty if it has none. */
const forOf = (element: string): string => /(?:^|;)\s*for=([^;]*)/i.exec(element)?.[1] ?? "";

/** Returns the /64 network: the first four of the eight groups. */
const networkOf = (address: string): string => `${ipv6Groups(address.replace(/%.*$/, "")).slice(0, 4).join(":")}::/64`;

const current = new AsyncLocalStorage<string>();

/** Runs the handling of one request. Everything logged meanwhile, however deep, can contain the request's id. */
export const inRequest = <T>(id: string, handle: () => Promise<T>): Promise<T> => current.run(id, handle);

/** Returns the current request for the log, or an empty object in a job. */
export const requestFacts = (): { readonly request_id?: string } => {
  const id = current.getStore();
  return id === undefined ? {} : { request_id: id };
};
