import { lookup, Resolver } from "node:dns/promises";
import { networkInterfaces } from "node:os";

/** Every address of a name, IPv4 and IPv6; empty when it has none. Rejects when the answer is not known. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

const HAS_NONE = new Set(["ENODATA", "ENOTFOUND"]);

/**
 * Asks the DNS itself, both record types at once. `dns.lookup` would do its work in the few threads that all of the process
 * shares, so that names whose servers do not answer could stop it.
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

/** Asks as other programs of this machine do, its own table of hosts included: only for names that the operator chose. */
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
