export type AddressClass = "public" | "loopback" | "special";

/** An address as a number, with its length in bits. */
interface Parsed {
  readonly bits: 32 | 128;
  readonly value: bigint;
}

/**
 * Parses an IPv4 address in its canonical form: four decimal numbers without leading zeros (RFC 6943, section 3.1.1).
 */
function parseIpv4(text: string): bigint | null {
  const parts = text.split(".");
  const isByte = (part: string) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256;
  if (parts.length !== 4 || !parts.every(isByte)) return null;
  return parts.reduce((value, part) => value * 256n + BigInt(part), 0n);
}

/**
 * Returns the 16-bit groups of a part of an IPv6 address, in which a trailing dotted quad counts as two. Null if it is
 * not valid.
 */
function groupsOf(text: string): bigint[] | null {
  if (text === "") return [];
  const parts = text.split(":");
  const quad = parts.at(-1)?.includes(".") ? parseIpv4(parts.pop() ?? "") : undefined;
  if (quad === null || !parts.every((part) => /^[0-9a-f]{1,4}$/i.test(part))) return null;
  return [...parts.map((part) => BigInt(`0x${part}`)), ...(quad === undefined ? [] : [quad >> 16n, quad & 0xffffn])];
}

/** Parses an IPv6 address in any form of RFC 4291, section 2.2, but without a zone (`%eth0`). */
function parseIpv6(text: string): bigint | null {
  const halves = text.split("::");
  const head = groupsOf(halves[0] ?? "");
  const tail = groupsOf(halves[1] ?? "");
  if (halves.length > 2 || head === null || tail === null) return null;
  // A dotted quad ends an address, so it cannot precede `::`.
  if (halves.length === 2 && halves[0]?.includes(".")) return null;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
  const groups = [...head, ...Array<bigint>(missing).fill(0n), ...tail];
  return groups.reduce((value, group) => (value << 16n) | group, 0n);
}

function parse(text: string): Parsed | null {
  const four = parseIpv4(text);
  if (four !== null) return { bits: 32, value: four };
  const six = text.includes(":") ? parseIpv6(text) : null;
  return six === null ? null : { bits: 128, value: six };
}

/** Parses `10.0.0.0/8` into the numbers that `inside` compares. */
function range(cidr: string): Parsed & { readonly length: number } {
  const [address = "", length = ""] = cidr.split("/");
  const parsed = parse(address);
  if (parsed === null) throw new Error(`not a range of addresses: ${cidr}`);
  return { ...parsed, length: Number(length) };
}

type AddressRange = ReturnType<typeof range>;

function inside({ bits, value }: Parsed, { length, ...prefix }: AddressRange): boolean {
  const shift = BigInt(bits - length);
  return bits === prefix.bits && value >> shift === prefix.value >> shift;
}

/**
 * Every block of the IANA IPv4 Special-Purpose Address Registry (RFC 6890), including the globally reachable ones;
 * multicast (RFC 5771); and Azure's platform address, which every machine there can reach.
 */
const SPECIAL_IPV4 = [
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
].map(range);

/** Global unicast (RFC 4291, section 2.4); excludes mapped, NAT64, unique local, link-local and multicast addresses. */
const GLOBAL_IPV6 = range("2000::/3");

/**
 * The exclusions from 2000::/3 in the IANA IPv6 Special-Purpose Address Registry. 2001::/23 covers Teredo and ORCHID.
 */
const SPECIAL_IPV6 = ["2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"].map(range);

const LOOPBACK = ["127.0.0.0/8", "::1/128"].map(range);

/** An ISATAP interface identifier (RFC 5214, section 6.1) tunnels to the IPv4 address in its last 32 bits. */
const isIsatap = ({ bits, value }: Parsed): boolean => bits === 128 && ((value >> 32n) & 0xfdffffffn) === 0x5efen;

/** Whether the text is an IP address, without brackets. */
export const isAddress = (text: string): boolean => parse(text) !== null;

/** Classifies an address by its destination. Text that is not an address is `special`, so that it is refused. */
export function addressClass(text: string): AddressClass {
  const address = parse(text);
  if (address === null) return "special";
  if (LOOPBACK.some((block) => inside(address, block))) return "loopback";
  if (address.bits === 32) return SPECIAL_IPV4.some((block) => inside(address, block)) ? "special" : "public";
  const isGlobal = inside(address, GLOBAL_IPV6) && !SPECIAL_IPV6.some((block) => inside(address, block));
  return isGlobal && !isIsatap(address) ? "public" : "special";
}

/** Whether two texts are the same address, in any notation. */
export function sameAddress(one: string, other: string): boolean {
  const [a, b] = [parse(one), parse(other)];
  return a !== null && b !== null && a.bits === b.bits && a.value === b.value;
}
