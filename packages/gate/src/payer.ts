/** A wallet's address, as spelled in the payment. */
export type Address = `0x${string}`;

/** The schemes whose payloads name the payer in `authorization.from` or `permit2Authorization.from`. */
const SCHEMES = ["exact", "upto"];
const NAMES = ["authorization", "permit2Authorization"];

/**
 * Returns the wallet that must have signed a payment. Facilitators differ in which of two names they read, and some
 * ignore case, so a payment with two names is refused.
 * @throws Error for a payment that does not name exactly one wallet
 */
export function payerOf(payload: unknown, { scheme, network }: { scheme: string; network: string }): Address {
  if (!SCHEMES.includes(scheme) || !network.startsWith("eip155:"))
    throw new Error(`This shop cannot identify the payer in the scheme ${scheme} on ${network}`);
  const authorization = only(payload, /authorization$/i, NAMES);
  const from = only(authorization, /^from$/i, ["from"]);
  if (typeof from === "string" && /^0x[0-9a-fA-F]{40}$/.test(from)) return from as Address;
  throw new Error("The payment does not name the wallet that pays");
}

/** Returns the one member with such a name; undefined if its name is not in the list. */
function only(value: unknown, pattern: RegExp, names: readonly string[]): unknown {
  if (!isObject(value)) return undefined;
  const [name = "", ...others] = Object.keys(value).filter((key) => pattern.test(key));
  if (others.length > 0) throw new Error("The payment names more than one wallet that pays");
  return names.includes(name) ? value[name] : undefined;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
