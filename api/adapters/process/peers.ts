import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";

/** What a request says of where it comes from, as far as it can be believed. */
export interface Peers {
  /** Whom to count the request against: the client's address, of an IPv6 one the network (/64), which one subscriber has whole. */
  clientOf(incoming: IncomingMessage): string;
  /** The id that a trusted proxy gave it; null when there is none, or one that does not belong in a log. */
  requestIdOf(incoming: IncomingMessage): string | null;
}

const WELL_FORMED_ID = /^[A-Za-z0-9._-]{8,128}$/;

/** @param trusted addresses and ranges (CIDR) of our own reverse proxies: what only they may say is believed from nobody else */
export function createPeers(trusted: readonly string[]): Peers {
  const proxies = new BlockList();
  for (const range of trusted) {
    const [address = "", prefix] = range.split("/");
    if (prefix === undefined) proxies.addAddress(address, familyOf(address));
    else proxies.addSubnet(address, Number(prefix), familyOf(address));
  }
  const isProxy = (address: string): boolean => isIP(address) !== 0 && proxies.check(address, familyOf(address));
  return {
    clientOf(incoming) {
      let client = plain(incoming.socket.remoteAddress ?? "unknown");
      // Each proxy appends whom it was called by: from the end, the first that is no proxy of ours is the client.
      const hops = String(incoming.headers["x-forwarded-for"] ?? "").split(",");
      for (let hop = hops.pop(); hop !== undefined && isProxy(client); hop = hops.pop()) {
        const address = plain(hop.trim());
        if (isIP(address) === 0) break;
        client = address;
      }
      return isIP(client) === 6 ? networkOf(client) : client;
    },
    requestIdOf(incoming) {
      if (trusted.length === 0 || !isProxy(plain(incoming.socket.remoteAddress ?? ""))) return null;
      const id = incoming.headers["x-request-id"];
      return typeof id === "string" && WELL_FORMED_ID.test(id) ? id : null;
    },
  };
}

const familyOf = (address: string) => (isIP(address) === 6 ? "ipv6" : "ipv4");

/** An IPv4 address that came over an IPv6 socket is written like any other. */
const plain = (address: string): string => address.replace(/^::ffff:(?=[\d.]+$)/i, "");

/** The first four of the eight groups. */
function networkOf(address: string): string {
  const [head = "", tail] = address.split("%")[0]?.split("::") ?? [];
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => "0");
  const groups = [...left, ...zeros, ...right].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
}
