import type { Config } from "../config/config.ts";
import { addressClass, isAddress, sameAddress } from "./addresses.ts";

/** The settings that decide whether a URL may be fetched. */
export interface GuardSettings {
  /** Exact origins allowed on loopback and any port, for tests and local trials: `http://localhost:8080`. */
  readonly allowedOrigins: readonly string[];
  /** The service's own host name or address, as URLs write it; it cannot be a deliverable. */
  readonly ownHost: string;
}

/** Returns the limits on the arbiter's fetches on this installation. */
export const guard = ({
  baseUrl,
  arbiterAllowedOrigins,
}: Pick<Config, "baseUrl" | "arbiterAllowedOrigins">): GuardSettings => ({
  allowedOrigins: arbiterAllowedOrigins,
  ownHost: new URL(baseUrl).hostname,
});

export type TargetFault = "scheme" | "credentials" | "port" | "name" | "address" | "own_host";

const PORTS = new Set(["", "80", "443"]);

/**
 * Top-level names that never lead to a public site: the IANA Special-Use Domain Names registry (RFC 6761, 6762, 7686,
 * 8375, 9476), ICANN's `.internal`, and common names of private networks.
 */
const PRIVATE_SUFFIXES =
  /\.(localhost|local|internal|home\.arpa|localdomain|lan|intranet|private|corp|home|onion|alt|test|invalid)$/;

/** The host without brackets or trailing dot. */
export const bareHost = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");

export const isAllowedOrigin = (url: URL, { allowedOrigins }: GuardSettings): boolean =>
  allowedOrigins.includes(url.origin);

/**
 * Query parameters whose names alone show that they are secrets: keys, and the signatures in links of the large stores
 * and networks (S3, Google, Azure's `sig`, `Signature` of CloudFront and others, Alibaba, Tencent, Akamai, SharePoint).
 */
const SECRET_PARAMETERS =
  /^(access_token|auth_token|api_?key|client_secret|passw(or)?d|secret|authorization|jwt|tempauth|hdn(ea|tl|ts)|sig|(q-|x-[a-z]+-)?signature|x-[a-z]+-credential|(x-[a-z]+-)?security-token)$/i;

/**
 * Whether the URL's query contains a key or a signature, so that the link is meant for one recipient and is not public.
 */
const hasSecretParameter = (url: URL): boolean =>
  [...url.searchParams.keys()].some((name) => SECRET_PARAMETERS.test(name));

/** Whether this is the service's own name, or a subdomain such as `www`. */
const isOwnName = (host: string, own: string): boolean => host === own || host.endsWith(`.${own}`);

function nameFault(url: URL, { ownHost }: GuardSettings): TargetFault | null {
  const host = bareHost(url);
  if (isAddress(host)) {
    if (addressClass(host) !== "public") return "address";
    return sameAddress(host, ownHost) ? "own_host" : null;
  }
  if (isOwnName(host, ownHost.replace(/\.$/, ""))) return "own_host";
  // A trailing dot makes no difference to DNS but does to certificates.
  return host.includes(".") && !url.hostname.endsWith(".") && !PRIVATE_SUFFIXES.test(host) ? null : "name";
}

/** Returns the fault of a URL in a claim, before its name is resolved; null if there is none. */
export const claimFault = (url: URL, settings: GuardSettings): TargetFault | null =>
  targetFault(url, settings) ?? (hasSecretParameter(url) ? "credentials" : null);

/**
 * Returns the fault of a URL to fetch, before its name is resolved; null if there is none. Its query does not matter,
 * because a store may redirect every client to a link that it signs for the occasion.
 */
export function targetFault(url: URL, settings: GuardSettings): TargetFault | null {
  if (url.protocol !== "http:" && url.protocol !== "https:") return "scheme";
  if (url.username !== "" || url.password !== "") return "credentials";
  if (isAllowedOrigin(url, settings)) return null;
  if (!PORTS.has(url.port)) return "port";
  return nameFault(url, settings);
}

export interface Resolved {
  readonly url: URL;
  readonly addresses: readonly string[];
  /** The addresses of the machine's interfaces and, if they are refused, of the service's host. */
  readonly ownAddresses: readonly string[];
}

/** Returns the addresses to connect to; null if any is not public or belongs to the service. */
export function vetted({ url, addresses, ownAddresses }: Resolved, settings: GuardSettings): readonly string[] | null {
  const isAllowed = isAllowedOrigin(url, settings);
  const isFit = (address: string): boolean => {
    const kind = addressClass(address);
    if (isAllowed) return kind !== "special";
    return kind === "public" && !ownAddresses.some((own) => sameAddress(own, address));
  };
  return addresses.length > 0 && addresses.every(isFit) ? addresses : null;
}

/** A seller's origin in its canonical form, like `https://shop.example` or `http://localhost:3000`. */
export type WebOrigin = `${"http" | "https"}://${string}`;

/** 253 for a name, with a scheme and a port; a name may be written three times as long in Unicode. */
const LONGEST = 800;
const FORM = /^https?:\/\/[^/?#\\@\s]+\/?$/i;
const MORE = /^https?:\/\/[^/?#\\@\s]+[/?#]/i;

/**
 * Parses an origin into lower case, with names in Punycode, without a default port or a final slash. A refusal includes
 * the expected form.
 */
export function parseOrigin(text: string): { readonly origin: WebOrigin } | { readonly refused: string } {
  if (text === "") return { refused: `is empty; ${EXPECTED}` };
  if (text.length > LONGEST) return { refused: `has ${text.length} characters; ${EXPECTED}` };
  if (FORM.test(text) && URL.canParse(text)) return named(new URL(text));
  if (MORE.test(text) && URL.canParse(text)) return { refused: `names more than an origin; ${rightly(text)}` };
  if (/^[a-z0-9.-]+(:\d+)?$/i.test(text) && URL.canParse(`https://${text}`))
    return { refused: `has no scheme; ${rightly(`https://${text}`)}` };
  return { refused: `is not an origin; ${EXPECTED}` };
}

function named({ origin, hostname }: URL): ReturnType<typeof parseOrigin> {
  if (!hostname.endsWith(".")) return { origin: origin as WebOrigin };
  return { refused: `ends in a dot; ${rightly(origin)}` };
}

const EXPECTED = "expected one like https://shop.example";

/** Returns the expected form in place of this URL. A name of dots alone has none. */
function rightly(url: string): string {
  const bare = new URL(url).origin.replace(/\.+(?=:\d+$|$)/, "");
  return URL.canParse(bare) ? `expected ${bare}` : EXPECTED;
}
