import { type Address, getAddress, type Hex, isAddress } from "viem";

/** Thrown if a field of a payment cannot be parsed; the message names it and the expected form. */
export class Malformed extends Error {}

export function record(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Malformed(`${name} is not a JSON object`);
  }
  return value as Record<string, unknown>;
}

export function address(value: unknown, name: string): Address {
  if (typeof value !== "string" || !isAddress(value, { strict: false })) {
    throw new Malformed(`${name} is not an address: 0x and 40 hex digits`);
  }
  return getAddress(value);
}

export function hex(value: unknown, pattern: RegExp, name: string): Hex {
  if (typeof value !== "string" || !pattern.test(value))
    throw new Malformed(`${name} is not hex of the expected length`);
  return value.toLowerCase() as Hex;
}

/** Parses a whole number from a decimal string, a hex string, or a JSON number. */
export function whole(value: unknown, bits: number, name: string): bigint {
  const isText = typeof value === "string" && /^(\d{1,78}|0x[0-9a-f]{1,64})$/i.test(value);
  const isNumber = typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
  const number = isText || isNumber ? BigInt(value as string | number) : null;
  if (number === null || number >= 2n ** BigInt(bits)) {
    throw new Malformed(`${name} is not a whole number of at most ${bits} bits`);
  }
  return number;
}

/** Returns the result of `read`, or the fault it found. */
export function unlessMalformed<T>(read: () => T): T | { readonly malformed: string } {
  try {
    return read();
  } catch (error) {
    if (error instanceof Malformed) return { malformed: error.message };
    throw error;
  }
}
