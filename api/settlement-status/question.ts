import { Problem } from "../platform/http/errors.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import { type Address, type Hex, readWallet } from "../platform/wallet.ts";

/** The authorization to look up. `from` and `nonce` identify it, and the other members may be unknown. */
export interface Question {
  readonly network: Network;
  readonly from: Address;
  readonly nonce: Hex;
  readonly to: Address | null;
  /** Atomic units. */
  readonly value: bigint | null;
  /** Unix seconds. The authorization settles only in a block after this time. */
  readonly validAfter: bigint | null;
  /** Unix seconds. The authorization settles only in a block before this time. */
  readonly validBefore: bigint | null;
  /** A transaction that may have settled it. */
  readonly transaction: Hex | null;
}

export const NETWORK_NAMES = Object.values(NETWORKS).flatMap(({ id, key }) => [id, key]);
/** The type in EIP-3009 is uint256. */
const UINT256 = 2n ** 256n;

/** Returns a network by its CAIP-2 identifier or its key, or null if the service does not know it. */
export const networkNamed = (text: string): Network | null =>
  Object.values(NETWORKS).find(({ id, key }) => id === text || key === text)?.id ?? null;

export const bytes32Of = (text: string): Hex | null =>
  /^0x[0-9a-f]{64}$/i.test(text) ? (text.toLowerCase() as Hex) : null;

export const uint256Of = (text: string): bigint | null =>
  /^\d{1,78}$/.test(text) && BigInt(text) < UINT256 ? BigInt(text) : null;

type Parameter = "network" | "from" | "nonce" | "valid_before" | "transaction";

/** Parses the query of `GET /settlement`. @throws Problem with the name of the invalid parameter and the expected value */
export function questionOf(query: URLSearchParams): Question {
  const network = required(query, "network", { expected: NETWORK_NAMES.join(" or "), parse: networkNamed });
  const from = payerOf(query, network);
  const nonce = required(query, "nonce", {
    expected: "the authorization's nonce, 0x and 64 hex digits",
    parse: bytes32Of,
  });
  const validBefore = optional(query, "valid_before", {
    expected: "the authorization's validBefore in Unix seconds, a whole number",
    parse: uint256Of,
  });
  const transaction = optional(query, "transaction", {
    expected: "a transaction hash, 0x and 64 hex digits",
    parse: bytes32Of,
  });
  return { network, from, nonce, to: null, value: null, validAfter: null, validBefore, transaction };
}

function payerOf(query: URLSearchParams, network: Network): Address {
  const text = query.get("from");
  if (text === null) return malformed("from", "is missing; expected the payer's address, 0x and 40 hex digits");
  const read = readWallet(text, network);
  return "wallet" in read ? read.wallet : malformed("from", `is ${quoted(text)}; ${read.malformed}`);
}

interface Expected<Value> {
  readonly expected: string;
  readonly parse: (text: string) => Value | null;
}

function required<Value>(query: URLSearchParams, name: Parameter, expected: Expected<Value>): Value {
  const value = optional(query, name, expected);
  return value ?? malformed(name, `is missing; expected ${expected.expected}`);
}

function optional<Value>(query: URLSearchParams, name: Parameter, { expected, parse }: Expected<Value>): Value | null {
  const text = query.get(name);
  if (text === null) return null;
  return parse(text) ?? malformed(name, `is ${quoted(text)}; expected ${expected}`);
}

const MOST_SHOWN = 80;

/** Quotes a value, shortened if it is long. */
const quoted = (text: string): string =>
  text.length > MOST_SHOWN ? `${JSON.stringify(text.slice(0, MOST_SHOWN))}…` : JSON.stringify(text);

function malformed(name: Parameter, what: string): never {
  throw new Problem("malformed_request", { detail: `The query parameter ${name} ${what}.` });
}
