import { hkdfSync } from "node:crypto";
import { isAddress, zeroAddress } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import { z } from "zod";
import { type Address, type Hex, parseAddress } from "../wallet.ts";

// What the values of settings have to be like; each names what it expects.

export const url = (what: string, protocols: readonly string[]) =>
  z.string().refine((text) => URL.canParse(text) && protocols.includes(new URL(text).protocol), `expected ${what}`);
const isKey32 = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text);
export const key32 = (what: string) =>
  z.string().refine(isKey32, `expected ${what}: 32 bytes as 43 base64url characters`);
/** The private key of an account: a number that the curve has. */
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

/** Why this is no address that someone meant, or null; `expected` describes a right one. */
function addressProblem(text: string, expected: string): string | null {
  if (parseAddress(text) === null) return `expected ${expected}: 0x and 40 hex digits`;
  if (text.toLowerCase() === zeroAddress) return `the zero address belongs to no one; expected ${expected}`;
  // EIP-55: letters of one case carry no checksum.
  if (!isAddress(text) && text.slice(2) !== text.slice(2).toUpperCase())
    return `the EIP-55 checksum of ${text} does not match, so a character is mistyped; copy ${expected} again`;
  return null;
}

/** The same of addresses separated by commas. */
function addressesProblem(text: string, expected: string): string | null {
  const items = splitList(text);
  if (items.some((item) => parseAddress(item) === null))
    return `expected ${expected}, comma-separated: 0x and 40 hex digits each`;
  return items.map((item) => addressProblem(item, expected)).find((problem) => problem !== null) ?? null;
}

/** Adds an issue for what a function like `addressProblem` finds. */
const refuse =
  (expected: string, problemOf: (text: string, expected: string) => string | null) =>
  (text: string, context: z.RefinementCtx): void => {
    const message = problemOf(text, expected);
    if (message !== null) context.addIssue({ code: "custom", message });
  };

/** One address, in lower case. */
export const addressOf = (expected: string) =>
  z
    .string()
    .superRefine(refuse(expected, addressProblem))
    .transform((text) => lower(text as Hex));

export const contract = (what: string) => addressOf(`the address of ${what} on Base`);

const splitList = (text: string): string[] => text.split(",").map((item) => item.trim());

export const isHost = (text: string): boolean => /^([a-z0-9-]+\.)*[a-z0-9-]+(:\d{1,5})?$/.test(text);
export const isHttp = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);

/** Items separated by commas, each of which `fits`. */
export const listOf = (what: string, fits: (item: string) => boolean, each = "") =>
  z
    .string()
    .transform(splitList)
    .refine((items) => items.every(fits), `expected ${what}, comma-separated${each}`);

/** Keys of 32 bytes, separated by commas. */
export const keys32 = (what: string) => listOf(what, isKey32, ": 32 bytes as 43 base64url characters each");

/** JSON-RPC URLs separated by commas, each once. */
export const nodeList = (what: string) =>
  z
    .string()
    .transform(splitList)
    .refine((items) => items.every(isHttp), `expected ${what}`)
    .refine((items) => new Set(items).size === items.length, "expected every node once");

/** Addresses separated by commas; in lower case. */
export const addressesOf = (expected: string) =>
  z
    .string()
    .superRefine(refuse(expected, addressesProblem))
    .transform((text) => splitList(text).map((item) => lower(item as Hex)));

/** Without a key of its own, the log has one that follows from the key that signs documents. */
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
  /** Null if it answers no validation requests. */
  readonly validation: Address | null;
}

/** What an instance's outcomes may cost it. Published at `/escrow`. */
export interface EscrowLimits {
  /** The least that it evaluates or refunds by itself, in atomic USDC. */
  readonly minimum: bigint;
  /** The gas that the releases of a payer's holds may cost in a day (UTC) beyond what their fees pay for. */
  readonly payerGas: bigint;
  /** The gas that refunds of holds which nobody decided may cost in a day (UTC), all together. */
  readonly keeperGas: bigint;
}

/** The least minimum of any instance, in atomic USDC. */
export const MINIMUM_AMOUNT = 10_000;
