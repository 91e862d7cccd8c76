import { lookup, Resolver } from "node:dns/promises";
import { networkInterfaces } from "node:os";

/** Every address of a name, IPv4 and IPv6; empty if it has none. Rejects if the answer is unknown. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

const HAS_NONE = new Set(["ENODATA", "ENOTFOUND"]);

/**
 * Queries DNS directly, both record types at once. `dns.lookup` would run in the few threads the whole process shares,
 * so names whose servers never answer could stall it.
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

/** Resolves the way other programs on this machine do, hosts file included: only for names the operator chose. */
export const resolveLocal: Resolve = async (name) => {
  try {
    return (await lookup(name, { all: true })).map(({ address }) => address);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOTFOUND") return [];
    throw cause;
  }
};

/** The addresses of this machine's interfaces, without zones. */
export const interfaceAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address.replace(/%.*$/, "")));
