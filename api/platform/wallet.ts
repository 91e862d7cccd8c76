import { checksumAddress } from "viem";
import { MAIN_NETWORK, type Network } from "./networks.ts";

/** A 20-byte account address in lower case, checked once, at the boundary, by `parseAddress`. */
export type Address = `0x${string}`;
export type Hex = `0x${string}`;

const ADDRESS = /^0x[0-9a-f]{40}$/i;

/**
 * Returns the address in lower case, or null if the text is not an address. Accepts mixed case without checking its
 * EIP-55 checksum.
 */
export const parseAddress = (text: unknown): Address | null =>
  typeof text === "string" && ADDRESS.test(text) ? (text.toLowerCase() as Address) : null;

const ACCOUNT = /^(?:(?:did:pkh:)?(?!did:)([-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}):)?(0x[0-9a-f]{40})$/i;

/**
 * Parses a wallet given by its address, alone or as CAIP-10 or did:pkh. Capitals are a checksum (EIP-55) unless all
 * letters have the same case. `malformed` describes the expected text.
 */
export function readWallet(
  text: unknown,
  network: Network = MAIN_NETWORK,
): { readonly wallet: Address } | { readonly malformed: string } {
  const [, chain, written] = typeof text === "string" ? (ACCOUNT.exec(text) ?? []) : [];
  if (written === undefined)
    return { malformed: `expected a wallet: 0x and 40 hex digits, alone or after ${network}: or did:pkh:${network}:` };
  if (chain !== undefined && chain !== network)
    return { malformed: `expected a wallet on ${network}; this one is on ${chain}` };
  const wallet = written.toLowerCase() as Address;
  return isMistyped(written)
    ? {
        malformed: `the capitals of ${written} are not its checksum (EIP-55); look for a typing error, or write it in lower case`,
      }
    : { wallet };
}

/** Whether an address has capitals that are not its checksum. */
export function isMistyped(address: string): boolean {
  const digits = address.slice(2);
  if (digits === digits.toLowerCase() || digits === digits.toUpperCase()) return false;
  return checksumAddress(address.toLowerCase() as Address).slice(2) !== digits;
}
