import { BlockList, isIP, isIPv4 } from "node:net";

export type AddressClass = "public" | "loopback" | "special";

const listOf = (ranges: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", length] = range.split("/");
    list.addSubnet(address, Number(length), familyOf(address));
  }
  return list;
};

const familyOf = (address: string) => (isIPv4(address) ? "ipv4" : "ipv6");

/**
 * Every block of the IANA IPv4 Special-Purpose Address Registry (RFC 6890), including the globally reachable ones;
 * multicast (RFC 5771); and Azure's platform address, which every machine there can reach.
 */
const SPECIAL_IPV4 = listOf([
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "168.63.129.16/32",
]);

/** Global unicast (RFC 4291, section 2.4); excludes mapped, NAT64, unique local, link-local and multicast addresses. */
const GLOBAL_IPV6 = listOf(["2000::/3"]);

/**
 * The exclusions from 2000::/3 in the IANA IPv6 Special-Purpose Address Registry. 2001::/23 covers Teredo and ORCHID.
 */
const SPECIAL_IPV6 = listOf(["2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"]);

const LOOPBACK_IPV4 = listOf(["127.0.0.0/8"]);
const LOOPBACK_IPV6 = listOf(["::1/128"]);

/** Returns the eight groups of an IPv6 address without a zone, each in lower-case hex without leading zeros. */
export function ipv6Groups(address: string): readonly string[] {
  // URLs have one spelling of an address, without a dotted quad.
  const [head = "", tail = ""] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groupsOf = (part: string) => (part === "" ? [] : part.split(":"));
  const [left, right] = [groupsOf(head), groupsOf(tail)];
  return [...left, ...Array<string>(8 - left.length - right.length).fill("0"), ...right];
}

/** An ISATAP interface identifier (RFC 5214, section 6.1) tunnels to the IPv4 address in its last 32 bits. */
const isIsatap = (address: string): boolean => /^(0|200):5efe$/.test(ipv6Groups(address).slice(4, 6).join(":"));

/** Whether the text is an IP address, without brackets or a zone. */
export const isAddress = (text: string): boolean => isIP(text) !== 0 && !text.includes("%");

/** Classifies an address by its destination. Text that is not an address is `special`, so that it is refused. */
export function addressClass(text: string): AddressClass {
  if (!isAddress(text)) return "special";
  if (isIPv4(text)) {
    if (LOOPBACK_IPV4.check(text)) return "loopback";
    return SPECIAL_IPV4.check(text) ? "special" : "public";
  }
  if (LOOPBACK_IPV6.check(text, "ipv6")) return "loopback";
  const isGlobal = GLOBAL_IPV6.check(text, "ipv6") && !SPECIAL_IPV6.check(text, "ipv6");
  return isGlobal && !isIsatap(text) ? "public" : "special";
}

/** Whether two texts are the same address, in any notation. */
export function sameAddress(one: string, other: string): boolean {
  if (!isAddress(one) || !isAddress(other) || familyOf(one) !== familyOf(other)) return false;
  const list = new BlockList();
  list.addAddress(one, familyOf(one));
  return list.check(other, familyOf(other));
}
