import { AsyncLocalStorage } from "node:async_hooks";
import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";

/** Where a request comes from, as far as it can be trusted. */
export interface Peers {
  /**
   * The key to count the request under: the client's address or, for IPv6, its /64 network, which belongs to one
   * subscriber.
   */
  clientOf(incoming: IncomingMessage): string;
  /** The key to count a connection under, as for requests; null for a trusted proxy's, and for one of this machine. */
  connectionOf(address: string): string | null;
  /** The id a trusted proxy assigned; null if there is none, or if it does not belong in a log. */
  requestIdOf(incoming: IncomingMessage): string | null;
}

const WELL_FORMED_ID = /^[A-Za-z0-9._-]{8,128}$/;

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/**
 * @param trusted addresses and ranges (CIDR) of our own reverse proxies; forwarding headers are believed only from them
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
      // Each proxy appends the address that called it: from the end, the first that is not our proxy is the client.
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
      // A proxy writes one header and may pass on the other as the client wrote it. If they differ, neither is believed.
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

/** The address in a node's name: some proxies add its port, put an IPv6 address in brackets, or quote it. Null if there is none. */
function nodeAddress(name: string): string | null {
  const text = name.trim();
  const [, bracketed, dotted] = NODE.exec(text) ?? [];
  const address = plain(bracketed ?? dotted ?? text);
  return isIP(address) === 0 ? null : address;
}

/** The `for` of an element of `Forwarded` (RFC 7239, section 4); empty if it has none. */
const forOf = (element: string): string => /(?:^|;)\s*for=([^;]*)/i.exec(element)?.[1] ?? "";

/** The first four of the eight groups. */
function networkOf(address: string): string {
  const [head = "", tail] = address.split("%")[0]?.split("::") ?? [];
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => "0");
  const groups = [...left, ...zeros, ...right].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
}

const current = new AsyncLocalStorage<string>();

/** Runs the handling of one request. Everything logged meanwhile, however deep, can name the request. */
export const inRequest = <T>(id: string, handle: () => Promise<T>): Promise<T> => current.run(id, handle);

/** For the log: the current request, or nothing in a job. */
export const requestFacts = (): { readonly request_id?: string } => {
  const id = current.getStore();
  return id === undefined ? {} : { request_id: id };
};
