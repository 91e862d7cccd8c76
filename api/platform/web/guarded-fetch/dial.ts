import { lookup, Resolver } from "node:dns/promises";
import { connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { type SecureContextOptions, type TLSSocket, connect as tlsConnect } from "node:tls";
import { isAddress } from "../addresses.ts";
import { bareHost, type GuardSettings, isAllowedOrigin, targetFault, vetted } from "../target.ts";
import type { FetchFailure } from "./request.ts";

/** The published reason why an attempt ended; `cause` stays internal. */
export class Failed extends Error {
  readonly failure: FetchFailure;

  constructor(failure: FetchFailure, cause?: unknown) {
    super(failure, { cause });
    this.failure = failure;
  }
}

/** Opens a TCP connection to an address and port. It only ever receives vetted addresses, never a name. */
export type Dial = (address: string, port: number) => Socket;

export const dialTcp: Dial = (address, port) => connect({ host: address, port, autoSelectFamily: false });

const UNREACHABLE = new Set(["ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "EADDRNOTAVAIL", "EHOSTDOWN", "EAFNOSUPPORT"]);

function connectFailure(cause: unknown): FetchFailure {
  const code = (cause as NodeJS.ErrnoException | null)?.code ?? "";
  if (code === "ECONNREFUSED") return "refused";
  return UNREACHABLE.has(code) ? "unreachable" : "reset";
}

/**
 * Resolves with the socket on the event, or rejects with a `Failed` if it breaks first. An abort destroys the socket.
 */
function established<S extends Socket>(
  socket: S,
  event: "connect" | "secureConnect",
  { signal, failure }: { readonly signal: AbortSignal; readonly failure: (cause: unknown) => FetchFailure },
): Promise<S> {
  return new Promise((resolve, reject) => {
    let isSettled = false;
    const settle = (act: () => void) => {
      if (isSettled) return;
      isSettled = true;
      signal.removeEventListener("abort", onAbort);
      act();
    };
    const onAbort = () => {
      socket.destroy();
      settle(() => reject(signal.reason));
    };
    const fail = (cause: unknown) => {
      socket.destroy();
      settle(() => reject(new Failed(failure(cause), cause)));
    };
    signal.addEventListener("abort", onAbort);
    // The listener stays for the socket's whole life. Later errors belong to the request, but must not be uncaught.
    socket.on("error", fail);
    socket.once("close", () => fail(null));
    socket.once(event, () => settle(() => resolve(socket)));
    if (signal.aborted) onAbort();
  });
}

interface Target {
  readonly url: URL;
  readonly addresses: readonly string[];
}

export interface DialSettings {
  readonly dial: Dial;
  /** Replaces Node's certificate authorities in tests. */
  readonly ca: SecureContextOptions["ca"];
}

/** 0 for IPv4, 1 for IPv6. */
const familyRank = (address: string): number => (address.includes(":") ? 1 : 0);

/** The number of addresses to try per name. */
const MAX_DIALLED = 4;

/** Connects to the first address that answers, IPv4 before IPv6, because many hosts have no IPv6 route. */
async function connectAny({ url, addresses }: Target, dial: Dial, signal: AbortSignal): Promise<Socket> {
  const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
  const ordered = [...addresses].sort((a, b) => familyRank(a) - familyRank(b)).slice(0, MAX_DIALLED);
  let last: unknown = new Failed("dns");
  for (const address of ordered) {
    try {
      return await established(dial(address, port), "connect", { signal, failure: connectFailure });
    } catch (cause) {
      if (signal.aborted) throw cause;
      last = cause;
    }
  }
  throw last;
}

/**
 * Opens a connection for one request, over TLS if the URL requires it. Server name and certificate must match the URL's
 * host.
 */
export async function openConnection(
  target: Target,
  { dial, ca }: DialSettings,
  signal: AbortSignal,
): Promise<Socket | TLSSocket> {
  const socket = await connectAny(target, dial, signal);
  if (target.url.protocol === "http:") return socket;
  const host = bareHost(target.url);
  const secure = tlsConnect({
    socket,
    host,
    // RFC 6066, section 3: a literal address is not a server name.
    servername: isAddress(host) ? "" : host,
    ALPNProtocols: ["http/1.1"],
    ...(ca === undefined ? {} : { ca }),
  });
  secure.once("close", () => socket.destroy());
  return established(secure, "secureConnect", { signal, failure: () => "tls" });
}

/** Returns every address of a name, IPv4 and IPv6; empty if it has none. Rejects if that is unknown. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

const HAS_NONE = new Set(["ENODATA", "ENOTFOUND"]);

/**
 * Queries DNS directly, for both record types concurrently. `dns.lookup` would run in the few threads that the whole
 * process shares, so names whose servers never answer could stall it.
 */
export const resolvePublic: Resolve = async (name, signal) => {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 });
  const cancel = () => resolver.cancel();
  signal.addEventListener("abort", cancel);
  try {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
    const unclear = answers.find((answer) => answer.status === "rejected" && !HAS_NONE.has(answer.reason?.code));
    if (addresses.length === 0 && unclear?.status === "rejected") throw unclear.reason;
    return addresses;
  } finally {
    signal.removeEventListener("abort", cancel);
  }
};

/** Resolves like other programs on this machine, including the hosts file. Only for names that the operator chose. */
export const resolveLocal: Resolve = async (name) => {
  try {
    return (await lookup(name, { all: true })).map(({ address }) => address);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOTFOUND") return [];
    throw cause;
  }
};

/** Returns the addresses of this machine's interfaces, without zones. */
export const interfaceAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address.replace(/%.*$/, "")));

export interface VetParts {
  readonly settings: GuardSettings;
  readonly resolve: Resolve;
  /** For names that the operator chose: allowed origins and the service's own. */
  readonly resolveAllowed: Resolve;
  readonly interfaces: () => readonly string[];
  /** Whether to refuse names that share an address with the service's host, such as other sites behind the same CDN. */
  readonly refusesNeighbors: boolean;
}

/**
 * Returns the vetted addresses of a URL's host. A literal address is compared with the addresses of the service's own
 * host, which are looked up each time, because they may change while the process runs. A name is compared only if
 * neighbors are refused.
 * @throws Failed `blocked` or `dns`
 */
export async function addressesOf(
  { settings, resolve, resolveAllowed, interfaces, refusesNeighbors }: VetParts,
  url: URL,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (targetFault(url, settings) !== null) throw new Failed("blocked");
  const known = (host: string, how: Resolve) => (isAddress(host) ? [host] : how(host, signal));
  const host = bareHost(url);
  const isAllowed = isAllowedOrigin(url, settings);
  let found: readonly (readonly string[])[];
  try {
    found = await Promise.all([
      known(host, isAllowed ? resolveAllowed : resolve),
      isAllowed || !(refusesNeighbors || isAddress(host)) ? [] : known(settings.ownHost, resolveAllowed),
    ]);
  } catch (cause) {
    throw new Failed("dns", cause);
  }
  const [addresses = [], own = []] = found;
  if (addresses.length === 0) throw new Failed("dns");
  const fit = vetted({ url, addresses, ownAddresses: isAllowed ? [] : [...own, ...interfaces()] }, settings);
  if (fit === null) throw new Failed("blocked");
  return fit;
}
