import { randomBytes } from "node:crypto";
import type { LookupFunction } from "node:net";
import type { HttpRequest, Transport } from "../../packages/seller-check/src/exam/exchange.ts";
import { httpTransport } from "../../packages/seller-check/src/http-transport.ts";
import { isAddress } from "../platform/web/addresses.ts";
import {
  addressesOf,
  Failed,
  interfaceAddresses,
  type Resolve,
  resolveLocal,
  resolvePublic,
} from "../platform/web/guarded-fetch/dial.ts";
import { bareHost, type GuardSettings, targetFault } from "../platform/web/target.ts";

/** Sends requests to a seller, only at public addresses. */
export interface Visitor {
  /**
   * Returns the transport of one exam or probe. All of its requests together keep a seller busy for at most `withinMs`.
   */
  visit(withinMs: number, signal: AbortSignal): Transport;
  /**
   * Called after a request failed. Returns false if the seller's name did not resolve and one of ours does not either.
   */
  resolves(failure: unknown): Promise<boolean>;
}

export interface VisitorSettings extends GuardSettings {
  readonly userAgent: string;
  /** For tests; production's is the default. */
  readonly resolve?: Resolve;
  /** The addresses of this machine's interfaces; for tests. */
  readonly interfaces?: () => readonly string[];
}

/** The longest that one answer may take, up to its last byte. */
const ANSWER_MS = 15_000;
const RESOLVE_MS = 6_000;

/**
 * Creates a visitor of sellers that connects only to the public Internet: every connection resolves the name once and
 * uses only addresses that passed the check. Redirects are answers like any other.
 */
export function createVisitor(settings: VisitorSettings): Visitor {
  const vet = {
    settings,
    resolve: settings.resolve ?? resolvePublic,
    resolveAllowed: settings.resolve ?? resolveLocal,
    interfaces: settings.interfaces ?? interfaceAddresses,
    refusesNeighbors: true,
  };
  const own = new URL(`https://${settings.ownHost}/`);
  const isNamed =
    !isAddress(bareHost(own)) && targetFault(own, { allowedOrigins: [], ownHost: "our host itself" }) === null;
  const addresses = (url: URL) => addressesOf(vet, url, AbortSignal.timeout(RESOLVE_MS));
  return {
    async resolves(failure) {
      if (!isNamed || !(failure instanceof Failed && failure.failure === "dns")) return true;
      // A name that has not been looked up before, so that no resolver has cached its absence.
      const name = `${randomBytes(8).toString("hex")}.${settings.ownHost}`;
      const signal = AbortSignal.timeout(RESOLVE_MS);
      return Promise.all([vet.resolve(name, signal), vet.resolveAllowed(settings.ownHost, signal)]).then(
        () => true,
        () => false,
      );
    },
    visit(withinMs, signal) {
      const patience = createPatience(withinMs);
      const over = (request: HttpRequest): Transport =>
        httpTransport({
          lookup: lookupOf(request.url, addresses),
          withinMs: Math.max(1, Math.min(ANSWER_MS, patience.left())),
          signal,
          userAgent: settings.userAgent,
        });
      const guarded = async <T>(request: HttpRequest, send: (transport: Transport) => Promise<T>): Promise<T> => {
        signal.throwIfAborted();
        if (patience.left() <= 0) throw new Error(`the seller took more than ${withinMs / 1000} seconds in all`);
        const url = new URL(request.url);
        if (targetFault(url, settings) !== null) throw new Failed("blocked");
        // A literal address is connected to without a look-up.
        if (isAddress(bareHost(url))) await addresses(url);
        return patience.spend(() => send(over(request)));
      };
      return {
        send: (request) => guarded(request, (transport) => transport.send(request)),
        sendAndHangUp: (request) => guarded(request, (transport) => transport.sendAndHangUp(request)),
        async families(url) {
          const found = await addresses(new URL(url)).catch(() => []);
          return [...new Set(found.map((address) => (address.includes(":") ? 6 : 4)))];
        },
      };
    },
  };
}

/** Returns Node's form of a look-up that yields only vetted addresses. */
const lookupOf =
  (target: string, addresses: (url: URL) => Promise<readonly string[]>): LookupFunction =>
  (_, { all, family }, found) => {
    const fit = (address: string) => ({ address, family: address.includes(":") ? 6 : 4 });
    const wanted = family === "IPv6" ? 6 : family === "IPv4" ? 4 : (family ?? 0);
    addresses(new URL(target)).then(
      (all4and6) => {
        const some = all4and6.map(fit).filter((one) => wanted === 0 || one.family === wanted);
        const [first] = some;
        if (first === undefined) return found(new Failed("dns"), "", 0);
        return all ? found(null, some) : found(null, first.address, first.family);
      },
      (error: Error) => found(error, "", 0),
    );
  };

/** Measures the time during which at least one request waits for the seller. */
function createPatience(withinMs: number) {
  let [spent, waiting, since] = [0, 0, 0];
  const used = () => spent + (waiting > 0 ? performance.now() - since : 0);
  return {
    left: () => withinMs - used(),
    async spend<T>(work: () => Promise<T>): Promise<T> {
      if (waiting++ === 0) since = performance.now();
      try {
        return await work();
      } finally {
        if (--waiting === 0) spent += performance.now() - since;
      }
    },
  };
}
