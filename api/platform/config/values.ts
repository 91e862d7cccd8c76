import { hkdfSync } from "node:crypto";
import { isAddress, zeroAddress } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import { z } from "zod";
import { type Address, type Hex, parseAddress } from "../wallet.ts";

// The forms of setting values. Each error names the expected form.

export const url = (what: string, protocols: readonly string[]) =>
  z.string().refine((text) => URL.canParse(text) && protocols.includes(new URL(text).protocol), `expected ${what}`);
const isKey32 = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text);
export const key32 = (what: string) =>
  z.string().refine(isKey32, `expected ${what}: 32 bytes as 43 base64url characters`);
/** The private key of an account, which must be valid on the curve. */
export const accountKey = (what: string) =>
  z.string().refine((text) => /^0x[0-9a-f]{64}$/i.test(text) && isOnCurve(text as Hex), {
    error: `expected ${what}: 0x and 64 hex digits`,
  });
export const whole = (low: number, high: number) =>
  z
    .string()
    .regex(/^\d+$/, `expected a whole number from ${low} to ${high}`)
    .transform(Number)
    .refine((n) => n >= low && n <= high, `expected a whole number from ${low} to ${high}`);

/** `localhost`, its subdomains, and the loopback addresses, as host names or as addresses to listen on. */
export const isLoopback = (host: string | undefined): boolean =>
  host !== undefined && /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(host);

export const lower = (address: Hex): Hex => address.toLowerCase() as Hex;

/** Explains why a text is not a plausible address, or returns null. `expected` describes a correct one. */
function addressProblem(text: string, expected: string): string | null {
  if (parseAddress(text) === null) return `expected ${expected}: 0x and 40 hex digits`;
  if (text.toLowerCase() === zeroAddress) return `the zero address belongs to no one; expected ${expected}`;
  // EIP-55: letters of one case carry no checksum.
  if (!isAddress(text) && text.slice(2) !== text.slice(2).toUpperCase())
    return `the EIP-55 checksum of ${text} does not match, so a character is mistyped; copy ${expected} again`;
  return null;
}

/** The same for comma-separated addresses. */
function addressesProblem(text: string, expected: string): string | null {
  const items = splitList(text);
  if (items.some((item) => parseAddress(item) === null))
    return `expected ${expected}, comma-separated: 0x and 40 hex digits each`;
  return items.map((item) => addressProblem(item, expected)).find((problem) => problem !== null) ?? null;
}

/** Adds an issue if a function like `addressProblem` finds one. */
const refuse =
  (expected: string, problemOf: (text: string, expected: string) => string | null) =>
  (text: string, context: z.RefinementCtx): void => {
    const message = problemOf(text, expected);
    if (message !== null) context.addIssue({ code: "custom", message });
  };

/** Parses one address into lower case. */
export const addressOf = (expected: string) =>
  z
    .string()
    .superRefine(refuse(expected, addressProblem))
    .transform((text) => lower(text as Hex));

export const contract = (what: string) => addressOf(`the address of ${what} on Base`);

const splitList = (text: string): string[] => text.split(",").map((item) => item.trim());

export const isHost = (text: string): boolean => /^([a-z0-9-]+\.)*[a-z0-9-]+(:\d{1,5})?$/.test(text);
export const isHttp = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);

/** Parses comma-separated items, each of which must pass `fits`. */
export const listOf = (what: string, fits: (item: string) => boolean, each = "") =>
  z
    .string()
    .transform(splitList)
    .refine((items) => items.every(fits), `expected ${what}, comma-separated${each}`);

/** Parses comma-separated keys of 32 bytes. */
export const keys32 = (what: string) => listOf(what, isKey32, ": 32 bytes as 43 base64url characters each");

/** Parses comma-separated JSON-RPC URLs, each once. */
export const nodeList = (what: string) =>
  z
    .string()
    .transform(splitList)
    .refine((items) => items.every(isHttp), `expected ${what}`)
    .refine((items) => new Set(items).size === items.length, "expected every node once");

/** Parses comma-separated addresses into lower case. */
export const addressesOf = (expected: string) =>
  z
    .string()
    .superRefine(refuse(expected, addressesProblem))
    .transform((text) => splitList(text).map((item) => lower(item as Hex)));

/** Returns the log's key. Without its own variable, it follows from the key that signs documents. */
export const logKey = ({
  LOG_KEY,
  SIGNING_KEY,
}: {
  readonly LOG_KEY?: string | undefined;
  readonly SIGNING_KEY: string;
}) =>
  LOG_KEY === undefined
    ? Buffer.from(hkdfSync("sha256", Buffer.from(SIGNING_KEY, "base64url"), "", "tlog-checkpoint", 32))
    : Buffer.from(LOG_KEY, "base64url");

function isOnCurve(key: Hex): boolean {
  try {
    return privateKeyToAddress(key) !== zeroAddress;
  } catch {
    return false;
  }
}

/** The registries of ERC-8004 that this installation publishes to. */
export interface RegistryAddresses {
  readonly reputation: Address;
  /** Null if validation requests are not answered. */
  readonly validation: Address | null;
}

/** The limits on the cost of an instance's outcomes. Published at `/escrow`. */
export interface EscrowLimits {
  /** The smallest amount that it evaluates or refunds on its own initiative, in atomic USDC. */
  readonly minimum: bigint;
  /** The gas that releases of a payer's holds may cost per day (UTC) beyond the gas that their fees cover. */
  readonly payerGas: bigint;
  /** The gas that refunds of undecided holds may cost per day (UTC) in total. */
  readonly keeperGas: bigint;
}

/** The lower bound of every instance's minimum, in atomic USDC. */
export const MINIMUM_AMOUNT = 10_000;
