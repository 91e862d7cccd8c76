import { isAddress } from "../addresses.ts";
import { bareHost, type GuardSettings, isAllowedOrigin, targetFault, vetted } from "../target.ts";
import { Failed } from "./dial.ts";
import type { Resolve } from "./names.ts";

export interface VetParts {
  readonly settings: GuardSettings;
  readonly resolve: Resolve;
  /** For names the operator chose: allowed origins and the service's own. */
  readonly resolveAllowed: Resolve;
  readonly interfaces: () => readonly string[];
  /** Whether names are refused that share an address with the service's host, as strangers behind the same CDN do. */
  readonly refusesNeighbors: boolean;
}

/**
 * The vetted addresses of a URL's host. A URL that names an address is compared with those of the service's own host;
 * a name, only if neighbors are refused. They are looked up each time: they may change while the process runs.
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
